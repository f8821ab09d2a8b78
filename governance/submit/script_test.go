package submit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// scripted returns a request with a script, for a team whose members can create one.
func scripted(script string) (Team, Request) {
	team, r := vision(), train()
	team.MayScript = true
	r.Command, r.Script = "", script
	return team, r
}

// Manifests of a task with a script have the ConfigMap and the job that mounts it, as the
// console creates them.
func TestScriptManifest(t *testing.T) {
	for name, tc := range map[string]struct {
		script      string
		wantCommand []string
	}{
		"of the shell":      {"pip list\npython train.py \n\n", []string{"sh", "/kuota/script"}},
		"with interpreter":  {"#!/usr/bin/env python3\nprint('#!')\tif 1 else \"é\"\n---\n", []string{"/kuota/script"}},
		"of one line":       {"true", []string{"sh", "/kuota/script"}},
		"as long as can be": {"#! /bin/sh\n" + strings.Repeat("x", MaxScript-11), []string{"/kuota/script"}},
	} {
		t.Run(name, func(t *testing.T) {
			team, r := scripted(tc.script)
			plan, wrong := team.Complete(r)
			if len(wrong) > 0 {
				t.Fatal(wrong)
			}
			all, err := plan.Manifests()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range all {
				text, job, _ := strings.Cut(m.Text, "\n---\n")
				var script corev1.ConfigMap
				if err := yaml.UnmarshalStrict([]byte(text), &script); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(plan.script(), &script); diff != "" {
					t.Errorf("%s: the ConfigMap (-created +shown):\n%s", m.Kind, diff)
				}
				if !strings.Contains(job, "kind: "+string(m.Kind)) || !strings.Contains(job, "mountPath: /kuota") || strings.Contains(job, tc.script) && len(tc.script) > 4 {
					t.Errorf("%s: got the job\n%s", m.Kind, job)
				}
			}
			var job batchv1.Job
			_, text, _ := strings.Cut(all[0].Text, "\n---\n")
			if err := yaml.UnmarshalStrict([]byte(text), &job); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(plan.Job(), &job); diff != "" {
				t.Errorf("the Job (-created +shown):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantCommand, job.Spec.Template.Spec.Containers[0].Command); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
			if line, why := plan.HyperPodCommand(); line != "" || !strings.Contains(why, "script") {
				t.Errorf("got the HyperPod command %q, %q", line, why)
			}
		})
	}
}

// Ray runs the script as the entrypoint of the RayJob, on pods that all have it.
func TestScriptOfRayJob(t *testing.T) {
	team, r := scripted("python train.py")
	team.Kinds, r.Kind = []Kind{RayJob}, RayJob
	plan, wrong := team.Complete(r)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	all, err := plan.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"entrypoint: sh /kuota/script": 1, "mountPath: /kuota": 2, "name: train-script": 3, "command:": 0} {
		if got := strings.Count(all[0].Text, text); got != want {
			t.Errorf("got %d × %q, want %d:\n%s", got, text, want, all[0].Text)
		}
	}
}

// Each invalid script is reported at the field of the script.
func TestInvalidScripts(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		change func(*Team, *Request)
		want   string // the field
		text   string
	}{
		"too long":              {strings.Repeat("x", MaxScript+1), nil, "script", "256 KiB"},
		"invalid bytes":         {"echo \xff", nil, "script", "UTF-8"},
		"replaced bytes":        {"echo \ufffd", nil, "script", "UTF-8"},
		"a program":             {"\x7fELF\x00", nil, "script", "NUL"},
		"no whole path":         {"#!python3\n", nil, "script", "whole path"},
		"no interpreter":        {"#!\n/bin/sh", nil, "script", "whole path"},
		"a command as well":     {"true", func(_ *Team, r *Request) { r.Command = "true" }, "script", "either"},
		"no permission":         {"true", func(team *Team, _ *Request) { team.MayScript = false }, "script", "permission"},
		"a volume of its path":  {"true", func(_ *Team, r *Request) { r.Volumes = []ClaimMount{{"/kuota", "data", false}} }, "volumes", "/kuota"},
		"a volume in its path":  {"true", func(_ *Team, r *Request) { r.Volumes = []ClaimMount{{"/kuota/data", "data", false}} }, "volumes", "/kuota"},
		"permission without it": {"", func(team *Team, r *Request) { team.MayScript, r.Image = false, "" }, "image", "image"},
	} {
		t.Run(name, func(t *testing.T) {
			team, r := scripted(tc.script)
			if tc.change != nil {
				tc.change(&team, &r)
			}
			_, wrong := team.Complete(r)
			if len(wrong) != 1 || wrong[0].Path != tc.want || !strings.Contains(wrong[0].Message, tc.text) {
				t.Errorf("got %v, want one error at %s with %q", wrong, tc.want, tc.text)
			}
		})
	}
}
