package teams

import (
	"fmt"
	"path"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/forms"

	corev1 "k8s.io/api/core/v1"
)

// runtime parses what containers get besides resources. Lists have one entry in each line.
func (f *submitForm) runtime(wrong *governance.FieldErrors) (r submit.Runtime) {
	r.ServiceAccount = f.account
	eachLine(f.env, func(n int, line string) {
		name, value, found := strings.Cut(line, "=")
		if !found {
			wrong.Add("env", fmt.Sprintf("line %d has no =; write NAME=value", n))
			return
		}
		r.Env = append(r.Env, corev1.EnvVar{Name: strings.TrimSpace(name), Value: value})
	})
	eachLine(f.secrets, func(n int, line string) {
		name, from, found := strings.Cut(line, "=")
		secret, key, keyed := strings.Cut(from, "/")
		switch {
		case !found && !strings.Contains(line, "/"):
			r.EnvFrom = append(r.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: line}}})
		case !found || !keyed:
			wrong.Add("secrets", fmt.Sprintf("line %d is neither NAME=secret/key nor the name of a Secret", n))
		default:
			r.Env = append(r.Env, corev1.EnvVar{Name: strings.TrimSpace(name), ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: strings.TrimSpace(secret)}, Key: strings.TrimSpace(key),
			}}})
		}
	})
	eachLine(f.volumes, func(n int, line string) {
		at, claim, found := strings.Cut(line, "=")
		if !found {
			wrong.Add("volumes", fmt.Sprintf("line %d has no =; write /path=claim", n))
			return
		}
		claim, readOnly := strings.CutSuffix(strings.TrimSpace(claim), ":ro")
		at = strings.TrimSpace(at)
		if path.IsAbs(at) {
			at = path.Clean(at)
		}
		r.Volumes = append(r.Volumes, submit.ClaimMount{Path: at, Claim: claim, ReadOnly: readOnly})
	})
	var problem string
	r.SharedMemory, problem = forms.ParseGiB(f.shm)
	wrong.Add("sharedMemory", problem)
	count := func(path, text string) int32 {
		n, problem := forms.ParseWhole(text, 1000)
		switch {
		case text == "":
			return 0
		case problem == "" && n == 0:
			problem = "must be a whole number from 1 to 1,000"
		}
		wrong.Add(path, strings.Replace(problem, "from 0", "from 1", 1))
		return int32(n)
	}
	r.Processes = count("processes", f.processes)
	if !f.isElastic() {
		r.Tries = count("tries", f.tries)
	}
	return r
}

// eachLine calls do for each line that is not blank, with its number.
func eachLine(text string, do func(number int, line string)) {
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			do(i+1, line)
		}
	}
}
