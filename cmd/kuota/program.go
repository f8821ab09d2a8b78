package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"time"

	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/alerts/delivery"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/bulk"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/cluster/diagnostics"
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/controllers/dependencies"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/imports/adopt"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/kueue/preview"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/governance/kueue/simulate/worker"
	"kuota.dev/kuota/governance/notices"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/observe/logs"
	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/record/activity"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/recorder"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	estimates "kuota.dev/kuota/governance/tasks/estimate/live"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/web"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// drainLimit is how long the sign-in provider's pending responses may take when
// everything else has stopped. Together with the server's own limit, a shutdown
// takes less than two seconds.
const drainLimit = 400 * time.Millisecond

// noHistory is the value of --history that disables history.
const noHistory = "none"

// program is the console: the web server, the controllers and their dependencies.
// newProgram constructs the parts, Run starts those that run, Close releases
// the resources that remain open.
type program struct {
	config config
	log    *slog.Logger

	leader      *leader.Leader
	denials     *cluster.Denials
	cluster     *cluster.Cluster
	reconcilers reconcile.Reconcilers

	access      *access.Service
	audit       *audit.Recorder
	policies    *policy.Service
	allocations *allocations.Service
	departments *departments.Service
	tasks       *queries.Service
	capacity    *capacity.Service
	simulator   *live.Simulator
	guard       *loopguard.Guard

	history     *history.Store       // nil without history
	recorder    *recorder.Recorder   // nil without history
	activity    *activity.Log        // nil without history
	alerts      *alerts.Service      // nil without history
	notices     *notices.Service     // nil without history or sign-in
	estimator   *estimates.Estimator // nil without history
	submit      *submit.Service
	bulk        *bulk.Service
	keeper      *submit.Keeper       // nil if manifests are not kept
	utilization *utilization.Service // nil without Prometheus

	listener     net.Listener
	auditEvents  *auditReceiver           // nil without a receiver of audit events
	signIn       *web.SignIn              // nil without an issuer
	certificates *certwatcher.CertWatcher // nil without TLS
	server       *web.Server
}

// run runs the console until ctx ends or a part of it fails.
func run(ctx context.Context, c config, out io.Writer) error {
	log := slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: c.logLevel}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	slog.SetDefault(log)
	if len(c.retired) > 0 {
		log.Warn("flags or their variables have no effect any more, and the next version does not know them: remove them", "flags", c.retired)
	}
	p, err := newProgram(c, log)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.Run(ctx)
}

// newProgram constructs the console. It listens, but it does not serve yet.
func newProgram(c config, log *slog.Logger) (*program, error) {
	p := &program{config: c, log: log}
	for _, construct := range []func() error{p.newCluster, p.newServices, p.newHistory, p.newUtilization, p.newServer} {
		if err := construct(); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// newCluster constructs the client of the cluster and the controllers.
func (p *program) newCluster() error {
	c := p.config
	connection, err := c.restConfig()
	if err != nil {
		return err
	}
	p.denials = cluster.NewDenials(p.log)
	p.denials.Observe(connection)
	p.leader, err = leader.New(connection, leader.Options{Disabled: !c.leaderElection, Namespace: c.namespace, Identity: identity(), Log: p.log})
	if err != nil {
		return err
	}
	p.cluster, err = cluster.New(connection, cluster.Options{
		Namespace: c.namespace, NoSessions: c.oidc.issuer == "", TakeOver: c.takeOver, Metrics: c.metrics, Fence: p.leader.Fence, Log: p.log,
	})
	if err != nil {
		return err
	}
	p.reconcilers, err = reconcile.SetupWithManager(p.cluster.Manager, reconcile.Options{
		Naming: c.naming, Kueue: c.kueue, Revisions: p.cluster.Revisions, Namespace: c.namespace, JobControllers: list(c.jobControllers),
		ReadOnly: p.readOnly, RecordsUsers: p.cluster.RecordsUsers, Leader: p.leader,
	})
	if err != nil {
		return fmt.Errorf("set up controllers: %w", err)
	}
	return nil
}

// restConfig returns the configuration of a client of the cluster.
func (c config) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}

// readOnly reports whether the console must not write.
func (p *program) readOnly() bool { return p.cluster.ReadOnlyReason() != "" }

// simulationBytesPerWorkload is how much memory a simulation has for each Workload of a
// cluster that is simulated: about 7,000 in 1 GiB, whose questions end in time. See
// docs/figures.md.
const simulationBytesPerWorkload = 150 << 10

// newServices constructs the services that pages and controllers share.
func (p *program) newServices() error {
	naming := p.config.naming
	p.access = &access.Service{Cluster: p.cluster}
	p.audit = &audit.Recorder{Cluster: p.cluster, Log: p.log, Team: p.teamOf}
	p.policies = &policy.Service{Cluster: p.cluster, Naming: naming, Access: p.access, Audit: p.audit, Kueue: p.reconcilers.Kueue.Plan, Secrets: p.secretNames}
	p.allocations = &allocations.Service{Cluster: p.cluster, Naming: naming, Access: p.access, Audit: p.audit, Pools: p.policies}
	p.tasks = queries.New(p.cluster, p.access)
	p.submit = &submit.Service{Cluster: p.cluster, Access: p.access, Audit: p.audit, Tasks: p.tasks, Naming: naming, Kueue: p.kueueConfiguration}
	if memory := p.config.simulationBytes; memory > 0 {
		p.simulator = &live.Simulator{
			Reader: p.cluster.Reader, Kueue: p.kueueConfiguration, Worker: &worker.Worker{Command: simulationWorker(memory)}, Now: time.Now, Log: p.log,
			MaxWorkloads: int(memory / simulationBytesPerWorkload),
			Changes:      func() uint64 { return p.cluster.TaskChanges.Count() + p.cluster.AllocationChanges.Count() },
		}
		p.tasks.Simulator = p.simulator
	}
	p.tasks.InstanceTypeLabel = naming.InstanceTypeLabel
	p.capacity = &capacity.Service{Cluster: p.cluster, Tasks: p.tasks, Naming: naming}
	p.departments = &departments.Service{Cluster: p.cluster, Access: p.access, Audit: p.audit, Naming: naming, Capacity: p.capacity}
	guard := &loopguard.Guard{
		Audit: p.audit, Watcher: p.tasks.Watcher(), Find: p.tasks.Index.Workload, Log: p.log, Identity: p.leader.State().Identity, Now: time.Now,
		Paused: p.readOnly, Leader: p.leader,
	}
	if err := guard.Setup(p.cluster.Manager); err != nil {
		return err
	}
	p.tasks.Guard, p.guard = guard, guard
	if _, err := elastic.SetupWithManager(p.cluster.Manager, elastic.Options{Rooms: p.tasks.Rooms, Claims: p.tasks.Claims, Sources: p.tasks.IdleSources, Leader: p.leader, RecordsUsers: p.cluster.RecordsUsers, Paused: p.readOnly}); err != nil {
		return err
	}
	successors := &dependencies.Reconciler{Ending: p.ending, Now: time.Now}
	if err := successors.SetupWithManager(p.cluster.Manager, p.leader, p.readOnly); err != nil {
		return err
	}
	if p.config.teamMetrics {
		teams := &capacity.TeamMetrics{Snapshot: p.capacity.Snapshot, Waiting: p.tasks.Index.Waiting, Now: time.Now}
		if err := errors.Join(metrics.Registry.Register(teams), metrics.Registry.Register(&departments.Metrics{Figures: p.departments.AllFigures})); err != nil {
			return err
		}
	}
	return errors.Join(p.cluster.RegisterMetrics(metrics.Registry), metrics.Registry.Register(p.tasks.Index), metrics.Registry.Register(p.leader), metrics.Registry.Register(p.denials), metrics.Registry.Register(reconcile.KueueRestarts), metrics.Registry.Register(guard), metrics.Registry.Register(thisBuild().metric()))
}

// ending returns how a task ended, from history where the index does not know it: once its objects,
// or its Workload, are deleted.
func (p *program) ending(ctx context.Context, key tasks.Key) (dependencies.Ending, error) {
	if !p.tasks.Index.HasSynced() {
		return dependencies.NotEnded, nil
	}
	t := p.tasks.Index.ByKey(key)
	switch {
	case t == nil:
	case t.State == tasks.Succeeded:
		return dependencies.Succeeded, nil
	case t.State == tasks.Failed || t.TimedOut():
		return dependencies.Failed, nil
	case !t.NoWorkload:
		return dependencies.NotEnded, nil
	}
	var known history.Task
	if p.history != nil {
		found, err := p.history.TasksOf(ctx, []string{key.UID})
		if err != nil {
			return dependencies.NotEnded, err
		}
		known = found[key.UID]
	}
	switch ours := known.Namespace == key.Namespace; {
	case ours && known.State == string(tasks.Succeeded):
		return dependencies.Succeeded, nil
	case ours && known.State == string(tasks.Failed):
		return dependencies.Failed, nil
	case t != nil || ours && known.DeletedAt.IsZero():
		return dependencies.NotEnded, nil
	}
	return dependencies.Deleted, nil
}

// newHistory opens the history database, unless history is disabled.
func (p *program) newHistory() error {
	if p.config.history == noHistory {
		return nil
	}
	store, err := history.New(p.config.history, history.Options{Retention: p.config.historyKeep, PersonRetention: p.config.personsKeep, Log: p.log})
	if err != nil {
		return err
	}
	p.history = store
	if p.activity, err = activity.Open(p.config.activityFile(), store, p.log); err != nil {
		return err
	}
	p.audit.Activity = p.activity
	p.reconcilers.Allocations.Activity, p.reconcilers.Cohort.Activity, p.reconcilers.Ranking.Activity, p.reconcilers.Budgets.Usage = p.activity, p.activity, p.activity, store
	if p.reconcilers.Revisions != nil {
		p.reconcilers.Revisions.Activity = p.activity
	}
	if p.config.historyManifests {
		p.submit.Manifests = store
		p.keeper = &submit.Keeper{Service: p.submit, Leader: p.leader, Log: p.log}
	}
	p.recorder = &recorder.Recorder{Store: store, Cluster: p.cluster, Tasks: p.tasks, Capacity: p.capacity, Log: p.log, Leader: p.leader}
	p.recorder.Observe()
	p.estimator = &estimates.Estimator{
		Simulator: p.simulator, Store: store, Task: p.tasks.Index.ByWorkload, Teams: p.teams, Leader: p.leader,
		Changed: p.tasks.AdviceChanges.Notify, Log: p.log, Now: time.Now,
	}
	p.alerts = &alerts.Service{
		Store: store, Tasks: p.tasks, Capacity: p.capacity, Loops: p.guard.Loops, Contact: p.cluster.Contact.Age, Access: p.access, Activity: p.activity,
		Leader: p.leader, Log: p.log, Now: time.Now, Policy: p.policy, Departments: p.departmentTree, Notices: store,
		Sender: delivery.New(p.config.clusterName, p.secret),
	}
	if p.cluster.Sessions != nil {
		p.notices = &notices.Service{
			Store: p.cluster.Sessions, History: store, Access: p.access, Policy: p.policy, Teams: p.teams, Departments: p.departmentTree, Leader: p.leader, Log: p.log, Now: time.Now,
		}
		p.alerts.Persons = p.notices
	}
	return metrics.Registry.Register(p.alerts)
}

// policy returns the cluster policy; nil for none.
func (p *program) policy(ctx context.Context) (*v1alpha1.ClusterPolicy, error) {
	reader, err := p.cluster.Reader()
	if err != nil {
		return nil, err
	}
	return clusterstate.Policy(ctx, reader)
}

// secret returns the data of a Secret in the console's namespace.
func (p *program) secret(ctx context.Context, name string) (map[string][]byte, error) {
	secret, err := p.cluster.Clientset().CoreV1().Secrets(p.config.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return secret.Data, nil
}

// secretNames returns the names of the Secrets in the console's namespace that are no sessions.
func (p *program) secretNames(ctx context.Context) ([]string, error) {
	list, err := p.cluster.Clientset().CoreV1().Secrets(p.config.namespace).List(ctx, metav1.ListOptions{FieldSelector: "type!=" + string(cluster.SessionType)})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// teams reads the teams.
func (p *program) teams(ctx context.Context) (clusterstate.Teams, error) {
	reader, err := p.cluster.Reader()
	if err != nil {
		return clusterstate.Teams{}, err
	}
	return clusterstate.ReadTeams(ctx, reader)
}

// departmentTree reads the tree of departments.
func (p *program) departmentTree(ctx context.Context) (quota.Departments, error) {
	reader, err := p.cluster.Reader()
	if err != nil {
		return quota.Departments{}, err
	}
	return departments.Read(ctx, reader)
}

// teamOf returns the team of a task that a Workload or a job is; empty for none.
func (p *program) teamOf(o client.Object) string {
	teams, err := p.teams(context.Background())
	if err != nil {
		return ""
	}
	return teams.Of(tasks.PlaceOf(o))
}

// newUtilization constructs the reader of hardware utilization, if there is a
// Prometheus.
func (p *program) newUtilization() (err error) {
	if p.config.hardware.url == "" {
		return nil
	}
	options := p.config.hardware.options(p.log)
	options.OnChange = p.cluster.AllocationChanges.Notify // pages with figures render again
	if p.utilization, err = utilization.New(options); err != nil {
		return fmt.Errorf("set up Prometheus: %w", err)
	}
	return nil
}

// newServer listens, and constructs the web server with its pages.
func (p *program) newServer() (err error) {
	c := p.config
	if p.listener, err = net.Listen("tcp", c.listen); err != nil {
		return fmt.Errorf("listen on %s: %w", c.listen, err)
	}
	if p.signIn, err = c.signIn(p.listener.Addr(), p.cluster.Sessions, p.log); err != nil {
		return err
	}
	proxies, err := c.proxies()
	if err != nil {
		return err
	}
	h := p.handlers()
	options := web.Options{
		Listener: p.listener, Base: basePath(c.url), SignIn: p.signIn, User: web.User{Name: "local admin", Local: true},
		TrustedProxies: proxies, Chrome: h.Chrome, Metrics: metrics.Registry, Log: p.log,
	}
	if p.signIn != nil {
		options.Tokens = identifyTokens(p.signIn.Provider, &access.Tokens{Cluster: p.cluster, Writers: p.config.writers()})
	}
	address := "http://" + p.listener.Addr().String()
	if c.tlsCert != "" {
		if p.certificates, err = certwatcher.New(c.tlsCert, c.tlsKey); err != nil {
			return fmt.Errorf("read certificate: %w", err)
		}
		options.Certificate = p.certificates.GetCertificate
		address = "https://" + p.listener.Addr().String()
	}
	if p.server, err = web.New(options); err != nil {
		return err
	}
	h.Register(p.server)
	if p.alerts != nil && p.utilization != nil {
		p.alerts.Idle, p.alerts.Trainings, p.recorder.Trainings = h.IdleTasks, h.Trainings, h.TrainingStarts
	}
	p.log.Info("listening", "address", address+basePath(c.url), "issuer", c.oidc.issuer)
	if c.audit.listen != noAddress {
		p.auditEvents, err = newAuditReceiver(c, p.activity.Add, p.log)
	}
	return err
}

// kueueConfiguration reads Kueue's configuration.
func (p *program) kueueConfiguration(ctx context.Context) (kueueconfig.Current, error) {
	state, err := p.reconcilers.Kueue.State(ctx)
	return state.Current, err
}

// handlers constructs the pages.
func (p *program) handlers() *handlers.Handlers {
	c := p.config
	p.bulk = &bulk.Service{Store: &bulk.Memory{}, Log: p.log}
	if p.cluster.Sessions != nil {
		p.bulk.Store = p.cluster.Sessions
	}
	h := &handlers.Handlers{
		Console: console.Console{
			Allocations:     p.allocations,
			Departments:     p.departments,
			Tasks:           p.tasks,
			Capacity:        p.capacity,
			Settings:        &diagnostics.Service{Cluster: p.cluster, Access: p.access, Naming: c.naming, Install: c.kueue, Namespace: c.namespace, Kueue: p.reconcilers.Kueue.State, HelmRelease: c.helmRelease, SignIn: c.oidc.issuer != ""},
			Contact:         p.cluster.Contact,
			CapacityChanges: p.capacity,
			Trouble:         func() string { return p.cluster.MissingKinds().Message() },
			ReadOnly:        p.cluster.ReadOnlyReason,
			ClusterName:     c.clusterName,
			Dashboard:       c.dashboard,
			Now:             time.Now,
		},
		Revisions:    &revisions.Service{Store: p.cluster.Revisions, Access: p.access, Allocations: p.allocations},
		Policy:       p.policies,
		Adoption:     &adopt.Service{Cluster: p.cluster, Naming: c.naming, Access: p.access, Audit: p.audit, Kueue: p.kueueConfiguration},
		RecordsUsers: p.cluster.RecordsUsers,
		Leader:       p.leader.State,
		Setup:        c.setup(),
		Replays:      p.simulator.Replays,
		Submit:       p.submit,
		Logs:         &logs.Service{Cluster: p.cluster, Access: p.access, Tasks: p.tasks},
		ExternalLogs: c.externalLogs,
		Actions:      &actions.Service{Cluster: p.cluster, Access: p.access, Tasks: p.tasks, Audit: p.audit},
		Previews: &preview.Service{
			Cluster: p.cluster, Access: p.access, Naming: c.naming, Simulator: p.simulator, Tasks: p.tasks, Kueue: p.reconcilers.Kueue.Under, Priorities: p.reconcilers.Ranking.Priorities, Log: p.log,
		},
		AllocationChanges: p.cluster.AllocationChanges,
		TaskChanges:       p.cluster.TaskChanges,
		AdviceChanges:     &p.tasks.AdviceChanges,
		Bulk:              p.bulk,
		Naming:            c.naming,
		PodOwners:         p.tasks,
		IdleBelow:         c.hardware.idleBelow,
	}
	// A nil pointer in an interface field would not be nil.
	if p.utilization != nil {
		h.Hardware = p.utilization
	}
	if p.history != nil {
		h.History, h.Recording, h.SetAside, h.Setup.Database = p.history, p.recorder.State, p.history.CountSetAside, p.history.Dialect()
		h.Starts, h.Alerts = p.estimator, p.alerts
	}
	if p.notices != nil {
		h.Notices = p.notices
	}
	return h
}

// setup returns the settings that the console shows on its own page.
func (c config) setup() handlers.Setup {
	b := thisBuild()
	setup := handlers.Setup{Version: b.version, Revision: b.revision, Namespace: c.namespace, ClientID: c.oidc.clientID, UserClaim: c.oidc.usernameClaim}
	if issuer, err := url.Parse(c.oidc.issuer); err == nil {
		setup.Issuer = issuer.Host
	}
	return setup
}

// identity returns a name that no other process has, not even an earlier one on
// the same host.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "console"
	}
	return host + "-" + string(uuid.NewUUID())
}

// Run runs all parts until ctx ends or one of them fails.
func (p *program) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	p.bulk.Context = ctx
	group.Go(func() error { return p.server.Run(ctx) })
	group.Go(func() error { return p.cluster.Run(ctx) })
	group.Go(func() error {
		select { // a replica that cannot serve does not lead
		case <-p.cluster.Ready():
			return p.leader.Run(ctx)
		case <-ctx.Done():
			return nil
		}
	})
	if p.certificates != nil {
		group.Go(func() error { return p.certificates.Start(ctx) })
	}
	if p.auditEvents != nil {
		group.Go(func() error { return p.auditEvents.run(ctx) })
	}
	if p.signIn != nil {
		group.Go(func() error {
			p.config.watchKeys(ctx, p.signIn.Ring, p.log)
			return nil
		})
	}
	if p.utilization != nil {
		group.Go(func() error { return p.utilization.Run(ctx) })
	}
	if p.recorder != nil {
		group.Go(func() error { return p.activity.Run(ctx) })
		group.Go(func() error { return p.recorder.Run(ctx) })
		group.Go(func() error { return p.estimator.Run(ctx) })
		group.Go(func() error { return p.alerts.Run(ctx) })
	}
	if p.notices != nil {
		group.Go(func() error { return p.notices.Run(ctx) })
	}
	if p.keeper != nil {
		group.Go(func() error { return p.keeper.Run(ctx) })
	}
	return group.Wait()
}

// Close releases what Run leaves open, also of a program that newProgram has
// constructed in part.
func (p *program) Close() {
	if p.signIn != nil { // a lost response of the provider would sign its user out
		ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
		defer cancel()
		p.signIn.Sessions.Drain(ctx)
	}
	if p.simulator != nil {
		p.simulator.Worker.Close()
	}
	if p.history != nil {
		p.activity.Close()
		p.history.Close()
	}
	if p.listener != nil {
		p.listener.Close()
	}
}
