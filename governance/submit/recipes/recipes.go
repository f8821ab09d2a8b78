package recipes

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/python"

	corev1 "k8s.io/api/core/v1"
)

// Recipe is a task to begin with. What it does not say is completed for the pool that is
// chosen, as in any request.
type Recipe struct {
	Name  string
	Title string
	About string // what it does, and what to change for data of one's own
	// NotRun is why no test runs it; empty for what the tests run to its end.
	NotRun string

	script  string // in scripts
	elastic bool   // runs by kuota.elastic.run, from one pod to eight
	shared  bool   // needs a claim that all pods can write to
	whole   bool   // each pod has all accelerators of a node
	array   *submit.Array
	env     []corev1.EnvVar
	scale   []v1alpha1.ScaleConfig
}

// image has PyTorch 2.6 or newer.
const image = "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime"

// Claim is the claim that is mounted at /data where pods share files.
const Claim = "checkpoints"

// All are all recipes.
var All = []Recipe{
	{
		Name: "language-model", Title: "Fine-tune a small language model", elastic: true, shared: true, script: "language_model",
		About: "A copy of the model on each GPU. Set DATA to a file of text, and MODEL to a folder with a model of Hugging Face, in an image with transformers.",
		env:   variables("CHECKPOINT", "/data/language-model", "GLOBAL_BATCH", "32", "EPOCHS", "1"),
		scale: []v1alpha1.ScaleConfig{size(1, "MICRO_BATCH", "8"), size(8, "MICRO_BATCH", "4")},
	},
	{
		Name: "language-model-sharded", Title: "Fine-tune a language model, sharded", elastic: true, shared: true, script: "language_model",
		About:  "Each GPU has a part of the model (FSDP), so that larger ones fit. Settings as for the small language model.",
		NotRun: "FSDP needs GPUs: gloo, which connects CPUs, lacks what it needs",
		env:    variables("SHARD", "1", "CHECKPOINT", "/data/language-model-sharded", "GLOBAL_BATCH", "32", "EPOCHS", "1"),
		scale:  []v1alpha1.ScaleConfig{size(1, "MICRO_BATCH", "8"), size(8, "MICRO_BATCH", "4")},
	},
	{
		Name: "vision-model", Title: "Train a vision model", elastic: true, shared: true, script: "vision_model",
		About: "A classifier of images. Set DATA to a folder with one folder of images for each class, in an image with torchvision.",
		env:   variables("CHECKPOINT", "/data/vision-model", "GLOBAL_BATCH", "64", "EPOCHS", "1"),
		scale: []v1alpha1.ScaleConfig{size(1, "MICRO_BATCH", "32"), size(8, "MICRO_BATCH", "8")},
	},
	{
		Name: "batch-inference", Title: "Run a model on many inputs", elastic: true, shared: true, script: "batch_inference",
		About: "Each line of the file DATA gets one result, in files in OUTPUT. Replace Model in the script.",
		env:   variables("OUTPUT", "/data/batch-inference"),
	},
	{
		Name: "evaluation-sweep", Title: "Evaluate many settings", script: "evaluation_sweep", array: &submit.Array{First: 1, Last: 8, AtOnce: 4},
		About: "An array of eight settings, four at once, each with one line of results in its log. Replace evaluate in the script. It is not elastic: each index ends soon.",
	},
	{
		Name: "llama-3.1-8b", Title: "Fine-tune Llama 3.1 8B", elastic: true, shared: true, whole: true, script: "language_model",
		About:  "All parameters, with the settings that Tülu 3 publishes for the 8B model: 128 sequences of 4,096 tokens in a step, learning rate 5e-6, two epochs; without its warmup and decay. The model is at /data/llama-3.1-8b, the text at /data/train.txt.",
		NotRun: "it needs eight GPUs of 80 GB, and the model, whose license you have to accept",
		env:    variables("SHARD", "1", "MODEL", "/data/llama-3.1-8b", "DATA", "/data/train.txt", "CHECKPOINT", "/data/llama-3.1-8b-tuned", "GLOBAL_BATCH", "128", "SEQUENCE", "4096", "LEARNING_RATE", "5e-6", "EPOCHS", "2", "MICRO_BATCH", "1"),
	},
	{
		Name: "gpt-oss-20b", Title: "Fine-tune GPT-OSS 20B", elastic: true, shared: true, whole: true, script: "language_model",
		About:  "All parameters, with the settings of Axolotl's example for eight GPUs: 16 sequences of 4,096 tokens in a step, learning rate 2e-5, one epoch; without its warmup. The model, in bfloat16, is at /data/gpt-oss-20b, the text at /data/train.txt.",
		NotRun: "it needs eight GPUs of 80 GB, and the model",
		env:    variables("SHARD", "1", "MODEL", "/data/gpt-oss-20b", "DATA", "/data/train.txt", "CHECKPOINT", "/data/gpt-oss-20b-tuned", "GLOBAL_BATCH", "16", "SEQUENCE", "4096", "LEARNING_RATE", "2e-5", "EPOCHS", "1", "MICRO_BATCH", "1"),
	},
}

// Find returns the recipe with a name.
func Find(name string) (Recipe, bool) {
	return governance.Find(All, func(r Recipe) bool { return r.Name == name })
}

// Request returns the task of a recipe, sized for a pool.
func (r Recipe) Request(pool submit.QueuePool) submit.Request {
	q := submit.Request{Kind: submit.Job, Name: r.Name, Pool: pool.Name, Pods: 1, Image: image, Script: r.Script(), Array: r.array}
	q.Name = strings.ReplaceAll(q.Name, ".", "-")
	q.Env = append(q.Env, r.env...)
	if r.shared {
		q.Volumes = []submit.ClaimMount{{Path: "/data", Claim: Claim}}
	}
	if n := int64(pool.Instance.Accelerators); r.whole && n > 0 {
		q.PerPod.Accelerators, q.Processes = &n, int32(n)
	}
	if r.elastic {
		policy := v1alpha1.DefaultElasticPolicy()
		policy.MinReplicas, policy.MaxReplicas, policy.ReplicaDiscreteValues = 1, 8, []int32{1, 2, 4, 8}
		q.Elastic, q.ScaleConfig = &policy, r.scale
		if r.whole {
			policy.GracefulShutdownTimeoutInSeconds = 600 // a checkpoint of the whole model
		}
	}
	return q
}

//go:embed scripts
var scripts embed.FS

// Script returns what the containers run. That of a training is a shell script that writes the
// files of the training and of kuota.elastic, and starts it: images need only PyTorch.
func (r Recipe) Script() string {
	text := file(scripts, path.Join("scripts", r.script+".py"))
	if !r.elastic {
		return text
	}
	var out strings.Builder
	put := func(name, text string) { fmt.Fprintf(&out, "cat >%s <<'END_OF_FILE'\n%sEND_OF_FILE\n", name, text) }
	fmt.Fprintf(&out, "#!/bin/sh\n# %s. The training is train.py below; the rest runs it at any size.\nset -e\nmkdir -p /tmp/run/kuota/elastic\ncd /tmp/run\n", r.Title)
	put("train.py", text)
	if strings.Contains(text, "import loop\n") {
		put("loop.py", file(scripts, "scripts/loop.py"))
	}
	out.WriteString("touch kuota/__init__.py\n")
	library, err := fs.Glob(python.Elastic, "kuota/elastic/*.py")
	if err != nil {
		panic(err) // the pattern is valid
	}
	for _, name := range library {
		put(name, file(python.Elastic, name))
	}
	out.WriteString("PYTHONPATH=/tmp/run exec python3 -m kuota.elastic.run train.py\n")
	return out.String()
}

func file(from embed.FS, name string) string {
	text, err := from.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded, or does not compile
	}
	return string(text)
}

// variables returns pairs of names and values as environment variables.
func variables(pairs ...string) (env []corev1.EnvVar) {
	for i := 0; i < len(pairs); i += 2 {
		env = append(env, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
	}
	return env
}

func size(replicas int32, name, value string) v1alpha1.ScaleConfig {
	return v1alpha1.ScaleConfig{Replicas: replicas, Env: []v1alpha1.ScaleVariable{{Name: name, Value: value}}}
}
