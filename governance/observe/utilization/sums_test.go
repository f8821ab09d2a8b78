package utilization

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

// series returns a series as Prometheus does.
func series(metric string, value float64, labels ...string) *model.Sample {
	s := &model.Sample{Metric: model.Metric{model.MetricNameLabel: model.LabelValue(metric), nodeName: "n"}, Value: model.SampleValue(value)}
	for i := 0; i < len(labels); i += 2 {
		s.Metric[model.LabelName(labels[i])] = model.LabelValue(labels[i+1])
	}
	return s
}

// Invalid values are no data and never 0, also if the server returns them.
func TestInvalidValueIsNoData(t *testing.T) {
	for name, value := range map[string]float64{"NaN": math.NaN(), "infinite": math.Inf(1), "negative": -1, "negative infinity": math.Inf(-1), "above 100 %": 101} {
		r := read(model.Vector{series(gpuBusy, value, "gpu", "0"), series(memoryUsed, 5, "gpu", "0")}, model.Vector{series("", value, partLabel, "idle")}, nil)
		sums := r.Sum(Inventory{Nodes: map[string]NodeInfo{"n": {Devices: map[Kind]int64{GPU: 1}}}, Pods: noOwner}, "")
		if g := sums.All.Devices[GPU]; len(r.Devices) != 1 || r.Devices[0].Busy.Known() || g.Reporting != 0 || g.Missing() != 1 || g.Memory.Known() || sums.All.CPU.Known() {
			t.Errorf("%s: %+v, %+v", name, r, sums)
		}
	}
}

func noOwner(PodName) (PodOwner, bool) { return PodOwner{}, false }

// Of several series of one device the largest counts, in any order.
func TestDuplicateSeriesCountOnce(t *testing.T) {
	all := model.Vector{
		series(gpuBusy, 30, "gpu", "0", "UUID", "a", "pod", "exporter-1", "namespace", "x"), series(gpuBusy, 70, "gpu", "0", "UUID", "a", "pod", "p", "namespace", "x"),
		series(gpuBusy, math.NaN(), "gpu", "0", "UUID", "a", "pod", "q", "namespace", "x"),
		series(nodeTotal, 100), series(nodeTotal, 90), series(nodeFree, 10), series(nodeFree, 20),
	}
	for range 20 {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		r := read(all, nil, nil)
		if len(r.Devices) != 1 || r.Devices[0].Busy != (Ratio{0.7, 1}) || len(r.Devices[0].Pods) != 2 || r.Nodes[0].Memory != (Ratio{80, 100}) {
			t.Fatalf("%+v", r)
		}
	}
}

// The sums of teams, tasks and unattributed devices count each device once.
func TestSumsAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		c := Inventory{Nodes: map[string]NodeInfo{}, Pods: func(p PodName) (PodOwner, bool) {
			return PodOwner{Team: p.Namespace, Task: p.Name}, p.Name != "unknown"
		}}
		var r Reading
		for i := range random.IntN(30) {
			d := Device{Kind: []Kind{GPU, Neuron}[random.IntN(2)], Node: strconv.Itoa(random.IntN(5)), Index: strconv.Itoa(i)}
			of := 1.0
			if d.Kind == GPU && random.IntN(3) == 0 {
				d.MIG, d.Profile = "1", "3g.40gb"
				of = 3.0 / 7
			}
			if random.IntN(4) > 0 {
				d.Busy = Ratio{random.Float64() * of, of}
			}
			for range random.IntN(3) {
				d.Pods = append(d.Pods, PodName{strconv.Itoa(random.IntN(3)), []string{"a", "b", "unknown"}[random.IntN(3)]})
			}
			r.Devices = append(r.Devices, d)
		}
		for i := range 4 {
			c.Nodes[strconv.Itoa(i)] = NodeInfo{Pool: strconv.Itoa(i % 2), Devices: map[Kind]int64{GPU: int64(random.IntN(9))}}
		}
		sums := r.Sum(c, "")
		for _, kind := range []Kind{GPU, Neuron} {
			all := sums.All.Devices[kind]
			teams, tasks, pools := sums.Unattributed[kind].Ratio, sums.Unattributed[kind].Ratio, Gauge{}
			for key, u := range sums.Teams {
				if key.Kind == kind {
					teams.Add(u.Ratio)
				}
			}
			for key, u := range sums.Tasks {
				if key.Kind == kind {
					tasks.Add(u.Ratio)
				}
			}
			for _, of := range sums.Pools {
				g := of.Devices[kind]
				pools.Ratio.Add(g.Ratio)
				pools.Reporting, pools.Total = pools.Reporting+g.Reporting, pools.Total+g.Total
			}
			for what, sum := range map[string]Ratio{"teams": teams, "tasks": tasks, "pools": pools.Ratio} {
				wantRatio(t, what, sum, all.Used, all.Of)
			}
			if pools.Reporting != all.Reporting || pools.Total != all.Total || all.Reporting > all.Total {
				t.Errorf("pools %+v, all %+v", pools, all)
			}
		}
	}
}

// Idle returns tasks with usage and no activity, and none with missing data.
func TestIdle(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	long, lately := now.Add(-time.Hour), now.Add(-time.Minute)
	pods := map[PodName]PodOwner{}
	r := Reading{At: now}
	add := func(task string, held int64, since time.Time, peaks ...float64) {
		name := PodName{"ns", task}
		pods[name] = PodOwner{Team: "team", Task: task, Accelerators: held, AdmittedAt: since}
		for i, peak := range peaks {
			d := Device{Kind: GPU, Node: "n", Index: task + strconv.Itoa(i), Pods: []PodName{name}}
			if peak >= 0 {
				d.Peak = Ratio{peak, 1}
			}
			r.Devices = append(r.Devices, d)
		}
	}
	add("idle", 2, long, 0, 0.049)
	add("larger", 3, long, 0, 0, 0)
	add("one of two works", 2, long, 0, 0.05)
	add("admitted lately", 1, lately, 0)
	add("beside Kueue", 0, time.Time{}, 0)
	add("one of two unknown", 2, long, 0, -1)
	add("one of two unseen", 2, long, 0)
	c := Inventory{Nodes: map[string]NodeInfo{"n": {Pool: "h100"}}, Pods: func(p PodName) (PodOwner, bool) { h, known := pods[p]; return h, known }}
	idle := r.Idle(c, "", 30*time.Minute, 0.05)
	if len(idle) != 2 || idle[0].Task != "larger" || idle[1].Task != "idle" || idle[1].Peak != 0.049 {
		t.Errorf("%+v", idle)
	}
	if other := r.Idle(c, "a100", 30*time.Minute, 0.05); len(other) != 0 {
		t.Errorf("in another pool: %+v", other)
	}
}
