package utilization

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The peak of a device is that of its current pod: the activity of an earlier pod does
// not count. A series that ended is no data.
func TestPeaks(t *testing.T) {
	metrics := func(busy int, pod string) string {
		return fmt.Sprintf("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"a\",Hostname=\"gpu-1\",namespace=\"ns\",pod=%q} %d\n", pod, busy)
	}
	l := newLab(t, map[string]string{"dcgm": metrics(90, "first")}, `- {job_name: dcgm, honor_labels: true, metrics_path: /dcgm, static_configs: [{targets: ["EXPORTER"]}]}`)
	s, err := New(Options{URL: l.url, IdleAfter: 2 * time.Second})
	must(t, err)
	peak := func(want float64, pod string) func(r *Reading) error {
		return func(r *Reading) error {
			if len(r.Devices) != 1 || len(r.Devices[0].Pods) != 1 || r.Devices[0].Pods[0].Name != pod || r.Devices[0].Peak != (Ratio{want, 1}) {
				return fmt.Errorf("want peak %v of pod %s: %+v", want, pod, r.Devices)
			}
			return nil
		}
	}
	until(t, s, peak(0.9, "first"))
	l.write(t, "dcgm", metrics(0, "first"))
	until(t, s, peak(0, "first"))
	l.write(t, "dcgm", metrics(1, "second"))
	until(t, s, func(r *Reading) error {
		if len(r.Devices) != 1 || len(r.Devices[0].Pods) != 1 || r.Devices[0].Pods[0].Name != "second" {
			return fmt.Errorf("want the second pod: %+v", r.Devices)
		}
		if p := r.Devices[0].Peak; p.Known() && p.Used != 0.01 {
			t.Errorf("the peak of the first pod counts for the second: %+v", r.Devices)
		}
		return nil
	})
	until(t, s, peak(0.01, "second"))
	must(t, os.Remove(filepath.Join(l.dir, "dcgm")))
	until(t, s, func(r *Reading) error {
		if len(r.Devices) != 0 {
			return errors.New("the device still exists")
		}
		return nil
	})
}
