package cli

import (
	"bytes"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Each command becomes one that the flags of Kuota read, with a sentence for all that is left out.
func TestTranslate(t *testing.T) {
	const onlyGPU = `--name only-gpu-quota --description "test description" --activation-state Enabled
		--compute-quota-config "ComputeQuotaResources=[{InstanceType=ml.g6.12xlarge,Accelerators=2}],ResourceSharingConfig={Strategy=LendAndBorrow,BorrowLimit=10}"
		--compute-quota-target "TeamName=onlygputeam2,FairShareWeight=10"`
	for name, tc := range map[string]struct {
		command, want string
		left          []string // begin of each sentence
	}{
		"launch post: accelerators only": {
			"aws sagemaker create-compute-quota " + onlyGPU,
			"kuota allocation create onlygputeam2 --quota 'ml.g6.12xlarge: gpus=2' --sharing lend-and-borrow --borrow-limit 10 --weight 10 --display-name only-gpu-quota",
			[]string{"--description is left out"},
		},
		"launch post: mixed": {
			`aws sagemaker create-compute-quota --name "mix-quota-type" --cluster-arn arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl \
 --compute-quota-config "ComputeQuotaResources=[{InstanceType=ml.g6.12xlarge,Accelerators=2},{InstanceType=ml.p5.48xlarge,Count=3},{InstanceType=ml.c5.2xlarge,VCpu=2}],\
   ResourceSharingConfig={Strategy=LendAndBorrow,BorrowLimit=10}" \
 --activation-state Enabled --compute-quota-target "TeamName=mixquotatype,FairShareWeight=10"`,
			"kuota allocation create mixquotatype --quota 'ml.g6.12xlarge: gpus=2' --quota 'ml.p5.48xlarge: instances=3' --quota 'ml.c5.2xlarge: vcpu=2' --sharing lend-and-borrow --borrow-limit 10 --weight 10 --display-name mix-quota-type",
			[]string{"--cluster-arn is left out"},
		},
		"launch post: the described quota as JSON": {
			`aws sagemaker update-compute-quota --compute-quota-id abcdefghijkl --target-version 1 --compute-quota-config '{"ComputeQuotaResources": [{"InstanceType": "ml.g6.12xlarge", "Accelerators": 2, "VCpu": 48.0}], "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50}, "PreemptTeamTasks": "LowerPriority"}' --compute-quota-target '{"TeamName": "onlygputeam", "FairShareWeight": 10}'`,
			"kuota allocation edit onlygputeam --quota 'ml.g6.12xlarge: gpus=2, vcpu=48.0' --sharing lend-and-borrow --borrow-limit 50 --preemption lower-priority --weight 10",
			[]string{"--compute-quota-id is left out", "--target-version is left out", "kuota allocation edit keeps the quota in other pools"},
		},
		"launch post: classes": {
			`aws sagemaker create-cluster-scheduler-config --name policy --cluster-arn arn --scheduler-config "PriorityClasses=[{Name=inference,Weight=90},{Name=experimentation,Weight=80},{Name=fine-tuning,Weight=50},{Name=training,Weight=70}],FairShare=Enabled"`,
			"kuota policy edit --prioritization task-ranking --class-weight inference=90,experimentation=80,fine-tuning=50,training=70 --idle fair-share",
			[]string{"--name is left out", "--cluster-arn is left out", "kuota policy edit keeps priority classes"},
		},
		"launch post: a task": {
			`hyp create hyp-pytorch-job --job-name sample-job1 --image IMAGE --pull-policy Always --tasks-per-node 1 --max-retry 1 --priority high-priority --namespace hyperpod-ns-team1 --queue-name hyperpod-ns-team1-localqueue
				--instance-type ml.g5.8xlarge --accelerators 1 --vcpu 4 --memory 1 --accelerators-limit 1 --vcpu-limit 5 --memory-limit 2`,
			"kuota run --detach --team team1 --name sample-job1 --image IMAGE --class high-priority --pool ml.g5.8xlarge --gpus 1 --cpu 4 --memory 1 --processes 1 --tries 2",
			[]string{"--pull-policy is left out", "--vcpu-limit is left out", "--memory-limit is left out: the limit of memory is the request; to use 2 GiB"},
		},
		"an update of little": {
			"aws sagemaker update-compute-quota --compute-quota-config PreemptTeamTasks=Never --compute-quota-target TeamName=vision --activation-state Disabled --region us-west-2 --output json --no-cli-pager",
			"kuota allocation edit vision --preemption never",
			[]string{"--region", "--output", "--no-cli-pager", "--activation-state Disabled is left out: run kuota allocation hold vision"},
		},
		"parts and absolute limits": {
			`aws sagemaker create-compute-quota --compute-quota-config "ComputeQuotaResources=[{InstanceType=ml.p5.48xlarge,MemoryInGiB=64.5,AcceleratorPartition={Type=mig-1g.10gb,Count=2}}],ResourceSharingConfig={Strategy=Some,AbsoluteBorrowLimits=[{InstanceType=ml.p5.48xlarge,Count=1}]},More=1" --compute-quota-target "TeamName='vision'" --tags Key=a,Value=b`,
			"kuota allocation create vision --quota 'ml.p5.48xlarge: memory=64.5'",
			[]string{"--tags", "AcceleratorPartition of ml.p5.48xlarge is left out", "Strategy is left out: it has no value Some", "AbsoluteBorrowLimits is left out", "More of compute-quota-config is left out"},
		},
		"whole nodes": {
			`hyp create hyp-pytorch-job --version 1.1 --job-name bert --image pytorch/pytorch:latest --queue-name hyperpod-ns-vision-localqueue --priority training-priority --command '["torchrun", "train.py"]' --args '[--epochs, 10, "a b"]' --instance-type ml.p5.48xlarge --node-count 2 --tasks-per-node 8 --environment '{"NCCL_DEBUG": "INFO", "A": 1}'`,
			"kuota run --detach --team vision --name bert --image pytorch/pytorch:latest --class training-priority --pool ml.p5.48xlarge --pods 2 --kind PyTorchJob --gpus 8 --processes 8 --env A=1 --env NCCL_DEBUG=INFO -- torchrun train.py --epochs 10 'a b'",
			[]string{"--version", "Several nodes become a PyTorchJob"},
		},
		"elastic": {
			"hyp create hyp-pytorch-job --job-name bert --image a --namespace hyperpod-ns-vision --queue-name hyperpod-ns-vision-share-exp --instance-type ml.p5.48xlarge --node-count 2 --max-node-count 8 --elastic-replica-increment-step 2 --elastic-graceful-shutdown-timeout-in-seconds 600 --tasks-per-node auto --command [python,train.py]",
			"kuota run --detach --team vision --share exp --name bert --image a --pool ml.p5.48xlarge --pods 2 --max-pods 8 --step 2 --grace 600 --gpus 8 --env PET_NPROC_PER_NODE=auto -- python train.py",
			[]string{""},
		},
		"elastic with other sizes": {
			"hyp create hyp-pytorch-job --job-name bert --image a --instance-type ml.p5.48xlarge --node-count 2 --max-node-count 8 --elastic-replica-discrete-values '[2,4,8]' --elastic-replica-increment-step=1 --command [python]",
			"kuota run --detach --name bert --image a --pool ml.p5.48xlarge --pods 2 --max-pods 8 --sizes 2,4,8 --gpus 8 -- python",
			[]string{"--elastic-replica-increment-step is left out: the task has a list of sizes"},
		},
		"all that is left out": {
			`hyp create hyp-pytorch-job --job-name a --image b --namespace research --queue-name other --label-selector '{"accelerator": "nvidia"}' --deep-health-check-passed-nodes-only true --scheduler-type kueue --service-account-name s --efa 1 --efa-limit 1 --accelerator-partition-type mig-1g.5gb --accelerator-partition-count 1 --accelerator-partition-limit 1 --preferred-topology topology.k8s.aws/network-node-layer-1 --required-topology topology.k8s.aws/network-node-layer-2 --elastic-scaling-timeout-in-seconds 60 --elastic-scale-up-snooze-time-in-seconds 60 --instance-type ml.p4d.24xlarge --output-s3-uri s3://a --debug --command [python] word`,
			"kuota run --detach --name a --image b --pool ml.p4d.24xlarge -- python",
			[]string{"--namespace research", "--queue-name other", "--label-selector", "--deep-health", "--scheduler-type", "--service-account-name", "--efa is", "--efa-limit", "--accelerator-partition-type", "--accelerator-partition-count", "--accelerator-partition-limit", "--preferred-topology", "--required-topology", "--elastic-scaling", "--elastic-scale-up", "--output-s3-uri is left out: kuota translate does not know it", "--debug", "word is left out"},
		},
		"volumes": {
			"hyp create hyp-pytorch-job --job-name a --image b --accelerators 1 --volume name=data,type=hostPath,mount_path=/data,path=/data --volume name=out,type=pvc,mount_path=/out,claim_name=out,read_only=true --command [python]",
			"kuota run --detach --name a --image b --gpus 1 --volume /out=out:ro -- python",
			[]string{"--volume data is left out"},
		},
		"before hyp": {
			"hyperpod start-job --job-name a --job-kind kubeflow/PyTorchJob -n hyperpod-ns-vision --image b --entry-script /opt/train.py --script-args '--lr 0.1' --environment LR=0.1,URL=http://a:80 --instance-type ml.c5.4xlarge --node-count 1 --persistent-volume-claims data:/data,out:/out --auto-resume --restart-policy OnFailure --results-dir ./results",
			"kuota run --detach --team vision --name a --image b --pool ml.c5.4xlarge --pods 1 --kind PyTorchJob --env LR=0.1 --env URL=http://a:80 --volume /data=data --volume /out=out -- torchrun /opt/train.py --lr 0.1",
			[]string{"--auto-resume", "--restart-policy", "--results-dir", "kuota translate knows no accelerators of ml.c5.4xlarge"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, messages, err := run(t, append([]string{"translate", "--"}, shellWords(t, tc.command)...)...)
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSuffix(out, "\n") != tc.want {
				t.Errorf("got\n%swant\n%s", out, tc.want)
			}
			sentences := strings.Split(strings.TrimSuffix(messages, "\n"), "\n")
			for _, begin := range tc.left {
				if !slices.ContainsFunc(sentences, func(s string) bool { return strings.HasPrefix(s, begin) }) {
					t.Errorf("no sentence begins with %q:\n%s", begin, messages)
				}
			}
			if len(sentences) != len(tc.left) {
				t.Errorf("got %d sentences, want %d:\n%s", len(sentences), len(tc.left), messages)
			}
			words := shellWords(t, out)[1:]
			found, rest, err := New(io.Discard, io.Discard).Find(words)
			if err != nil {
				t.Fatal(err)
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Error(err)
			}
			if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Error(err)
			}
			for _, row := range strings.Split(out, "--quota ")[1:] { // which no flag checks
				row = strings.Trim(strings.SplitN(row, " --", 2)[0], "' \n")
				if _, err := quotaRow(row); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What is not translated says why, in one sentence.
func TestNotTranslated(t *testing.T) {
	for command, want := range map[string]string{
		"hyp list hyp-pytorch-job":                      `"hyp list hyp-pytorch-job" is not translated: kuota translate reads hyp create hyp-pytorch-job`,
		"hyp list-cluster --region us-west-2":           `"hyp list-cluster" is not translated`,
		"aws s3 ls":                                     `"aws s3 ls" is not translated`,
		"kubectl get pods":                              `"kubectl get pods" is not translated`,
		"--verbose hyp":                                 `unknown flag: --verbose`,
		"hyp create hyp-pytorch-job":                    "has neither --job-name nor --image",
		"aws sagemaker update-compute-quota":            "which team?",
		"aws sagemaker create-cluster-scheduler-config": "has no --scheduler-config",
		"aws sagemaker create-compute-quota --compute-quota-target TeamName=a --compute-quota-config file://c.json":                   "names a file",
		"aws sagemaker create-compute-quota --compute-quota-target TeamName=a --compute-quota-config ComputeQuotaResources=[{":        "is no shorthand",
		"aws sagemaker create-compute-quota --compute-quota-target TeamName=a --compute-quota-config '{'":                             "is no JSON",
		"hyp create hyp-pytorch-job --image a --max-retry many":                                                                       "is no whole number",
		"hyp create hyp-pytorch-job --image a --environment nothing":                                                                  "is not understood",
		"aws sagemaker create-compute-quota --compute-quota-target TeamName=a --compute-quota-config A=[[[[[[[[[[[[[[[[[[[[[[1]]]]]]": "is no shorthand",
		"": "requires at least 1 arg",
	} {
		out, _, err := run(t, append([]string{"translate"}, shellWords(t, command)...)...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("%q: got %v and %q, want %q", command, err, out, want)
		}
	}
}

// shellWords returns the words that a shell reads.
func shellWords(t *testing.T, command string) (words []string) {
	t.Helper()
	if command == "" {
		return nil
	}
	shell := exec.Command("sh", "-c", `printf '%s\0' `+strings.ReplaceAll(strings.ReplaceAll(command, "\\\n", " "), "\n", " "))
	out, err := shell.Output()
	if err != nil {
		t.Fatal(err)
	}
	for word := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		words = append(words, string(word))
	}
	return words
}
