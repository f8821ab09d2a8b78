package views

// hostile is what a team might be called by somebody who tries.
const hostile = `"><script>alert('x')</script><img src=x onerror=alert(1)>`

func sampleChrome(title, active string) Chrome {
	return Chrome{
		Title:   title,
		Active:  active,
		User:    "ada@example.com",
		SignOut: true,
		Cluster: ClusterStatus{Name: "ml-cluster", Reachable: true, Age: "0.3 s"},
		Stream:  "/events",
	}
}

func sampleTasks() TasksPage {
	return TasksPage{
		Chrome:  sampleChrome("Tasks", "tasks"),
		Summary: "2 tasks: 1 running, 1 pending",
		Tasks: []TaskRow{
			{ID: "task-a", Name: "vit-pretrain", Kind: "Job", Status: Status{Tone: "ok", Label: "Running"}, Team: "vision", Namespace: "hyperpod-ns-vision",
				Class: "training", Accelerators: "2 GPUs", VCPU: "48", Memory: "512", Pool: "ml.p5.48xlarge", Submitted: "2026-11-21T09:10:00Z", SubmittedAgo: "2 h 05 m"},
			{ID: "task-b", Name: "clip-eval", Kind: "Job", Status: Status{Tone: "wait", Label: "Pending"}, Reason: "3 more GPUs needed", Team: "–", Namespace: "default",
				Class: "–", Accelerators: "–", VCPU: "4", Memory: "16", Pool: "–", Submitted: "2026-11-21T11:10:00Z", SubmittedAgo: "5 m"},
		},
	}
}

func samplePolicies() PoliciesPage {
	return PoliciesPage{
		Chrome:   sampleChrome("Policies", "policies"),
		Notice:   "Allocation vision was created.",
		NewURL:   "/policies/allocations/new",
		CanWrite: true,
		Allocations: []AllocationRow{
			{Team: "language", Namespace: "hyperpod-ns-language", Status: Status{Tone: "ok", Label: "Active"}, Sharing: "Lend", Preemption: "Never", Weight: 10},
			{Team: "vision", DisplayName: "Vision", Namespace: "hyperpod-ns-vision", Status: Status{Tone: "bad", Label: "Failed", Text: "The namespace belongs to somebody else."},
				Quota:   []QuotaLine{{"ml.p5.48xlarge", "2 GPUs · 48 vCPU"}, {"ml.g6.12xlarge", "1 GPU · 12 vCPU"}},
				Sharing: "Lend and borrow, up to 50 %", Preemption: "Lower priority", Weight: 50,
				Capacity: "ml.g6.12xlarge: 10 of 8 GPUs given out", Correction: "Put right 10:02:11"},
		},
		Others: []QuotaLine{{"ml.p5.48xlarge", "6 GPUs · 144 vCPU"}},
	}
}

// sampleForm has one row filled in with defaults, and one where everything is
// wrong.
func sampleForm() AllocationForm {
	bad := func(value string) TextField { return TextField{Value: value, Error: "This is wrong."} }
	return AllocationForm{
		Chrome:      sampleChrome("Create compute allocation", "policies"),
		Action:      "/policies/allocations/new",
		CancelURL:   "/policies",
		RequestID:   "request-1",
		Resumed:     true,
		Failure:     "The cluster does not answer.",
		Team:        bad("Vision!"),
		DisplayName: bad("Vision"),
		Description: bad("x"),
		Weight:      bad("200"),
		Errors: []Message{
			{Field: "team", Label: "Name", Text: "This is wrong."},
			{Field: "row-1-vcpu", Label: "Row 2, vCPU", Text: "This is wrong."},
			{Field: "row-1", Label: "Row 2", Text: "This is wrong."},
			{Field: "strategy", Label: "Lending and borrowing", Text: "This is wrong."},
			{Field: "preemption", Label: "Pre-emption", Text: "This is wrong."},
			{Text: "This belongs to no field."},
		},
		Rows: []AllocationFormRow{
			{Index: 0, Type: TextField{Value: "ml.p5.48xlarge"}, There: "16 GPUs there", Over: "18 of 16 GPUs are given out.",
				Accelerators: AmountField{TextField: TextField{Value: "2"}},
				VCPU:         AmountField{TextField: TextField{Value: "40"}, Default: "48"},
				Memory:       AmountField{Default: "512"},
				Borrow:       "Borrows up to 1 GPU", BorrowNone: "Half of one is none."},
			{Index: 1, Type: bad("ml.p9"), Error: "The row is wrong.",
				Instances: AmountField{TextField: bad("x")}, Accelerators: AmountField{TextField: bad("x")},
				VCPU: AmountField{TextField: bad("x"), Default: "48"}, Memory: AmountField{TextField: bad("")}},
		},
		CanAddRow:       true,
		InstanceTypes:   []InstanceTypeOption{{"ml.p5.48xlarge", "8 H100 · 192 vCPU"}},
		Strategy:        "LendAndBorrow",
		StrategyError:   "This is wrong.",
		BorrowPercent:   bad("x"),
		BorrowEnabled:   true,
		Preemption:      "LowerPriority",
		PreemptionError: "This is wrong.",
	}
}
