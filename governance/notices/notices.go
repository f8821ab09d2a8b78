package notices

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/quota"
)

const (
	// kept is how long a person gets notices after they last opened a page: their groups are
	// known from the sign-in only, and a person who left signs in no more.
	kept = 90 * 24 * time.Hour
	// renewed is how old the time at which a person was seen is at most.
	renewed = 24 * time.Hour
	// maxRecord bounds the record of a person, which is a Secret.
	maxRecord = 512 << 10
)

// Store keeps texts by name until they expire; cluster.Sessions is one.
type Store interface {
	// Latest returns a text as it is now, and Known what is in memory; empty for none.
	Latest(ctx context.Context, name string) (text, version string, err error)
	Known(ctx context.Context, name string) (text, version string, err error)
	Create(ctx context.Context, name, text string, expires time.Time) (bool, error)
	Update(ctx context.Context, name, text string, expires time.Time, version string) (bool, error)
	Delete(ctx context.Context, name string) error
	// WithPrefix returns all texts whose names have a prefix.
	WithPrefix(ctx context.Context, prefix string) (map[string]string, error)
}

// Access reports what people may see; access.Service does.
type Access interface {
	Scope(ctx context.Context, user governance.User) (access.Scope, error)
	CanSee(ctx context.Context, user governance.User, namespace string) (bool, error)
}

// Service keeps what people asked for, and makes messages of it while this replica leads. Its
// fields must not change while it runs. It is safe for concurrent use.
type Service struct {
	Store   Store
	History History
	Access  Access
	// Policy returns the cluster policy, whose receivers people choose among; nil for none.
	Policy func(ctx context.Context) (*v1alpha1.ClusterPolicy, error)
	Teams  func(ctx context.Context) (clusterstate.Teams, error)
	// Departments returns the tree of departments.
	Departments func(ctx context.Context) (quota.Departments, error)
	Leader      *leader.Leader
	Log         *slog.Logger
	Now         func() time.Time
	// Interval is how often messages are made; 0 for a minute.
	Interval time.Duration
}

// Settings are what a person asked for: the events, and the names of receivers.
type Settings struct {
	On []Event
	To []string
}

// record is what is kept of a person.
type record struct {
	Person string    `json:"person"`
	Groups []string  `json:"groups,omitempty"`
	Email  string    `json:"email,omitempty"` // that the sign-in provider verified
	On     []Event   `json:"on"`
	To     []string  `json:"to"`
	Seen   time.Time `json:"seen"` // when the person last opened a page, within renewed
}

func (r *record) user() governance.User {
	return governance.User{Name: r.Person, Groups: r.Groups, Email: r.Email}
}

// prefix begins the names of records in the Store.
const prefix = "notices-"

// nameOf returns the name of the record of a person.
func nameOf(person string) string {
	sum := sha256.Sum256([]byte(person))
	return prefix + hex.EncodeToString(sum[:20])
}

// Receiver is a receiver that a person can choose.
type Receiver struct {
	Name, Type       string
	Team, Department string // that its notices are limited to; empty for none
	// Problem is why this person cannot choose it; empty for none.
	Problem string
}

// State is what a person asked for, and could ask for.
type State struct {
	Settings
	Email     string    // of the person; empty without a verified one
	Until     time.Time // when notices end unless the person is seen; zero without notices
	Receivers []Receiver
	Lost      []string // receivers of Settings.To that the person cannot choose any more
}

// noEmail is the problem of mail to a person without an address.
const noEmail = "The sign-in provider reports no verified e-mail address of you."

// Get returns what user asked for.
func (s *Service) Get(ctx context.Context, user governance.User) (State, error) {
	if err := isPerson(user); err != nil {
		return State{}, err
	}
	r, _, err := s.read(ctx, user.Name)
	if err != nil {
		return State{}, err
	}
	if user.Email == "" { // a token of the command line may have none
		user.Email = r.Email
	}
	state := State{Settings: Settings{r.On, r.To}, Email: user.Email}
	if !r.Seen.IsZero() {
		state.Until = r.Seen.Add(kept)
	}
	if state.Receivers, err = s.receivers(ctx, user); err != nil {
		return State{}, err
	}
	for _, name := range r.To {
		if !slices.ContainsFunc(state.Receivers, func(c Receiver) bool { return c.Name == name && c.Problem == "" }) {
			state.Lost = append(state.Lost, name)
		}
	}
	return state, nil
}

// Set replaces what user asked for. Without events there are no notices.
func (s *Service) Set(ctx context.Context, user governance.User, want Settings) error {
	if err := isPerson(user); err != nil {
		return err
	}
	if len(want.On) == 0 {
		return s.Store.Delete(ctx, nameOf(user.Name))
	}
	r, version, err := s.read(ctx, user.Name)
	if err != nil {
		return err
	}
	if user.Email == "" {
		user.Email = r.Email
	}
	receivers, err := s.receivers(ctx, user)
	if err != nil {
		return err
	}
	var wrong governance.FieldErrors
	for i, event := range want.On {
		if !slices.Contains(Events, event) {
			wrong.Addf(fmt.Sprintf("on[%d]", i), "is none of start, end, fail and preempt")
		}
	}
	for i, name := range want.To {
		at := slices.IndexFunc(receivers, func(c Receiver) bool { return c.Name == name })
		switch {
		case at < 0:
			wrong.Addf(fmt.Sprintf("to[%d]", i), "is no receiver of notices that you can choose")
		case receivers[at].Problem != "":
			wrong.Addf(fmt.Sprintf("to[%d]", i), "%s", receivers[at].Problem)
		}
	}
	if len(want.To) == 0 {
		wrong.Addf("to", "choose a receiver")
	}
	if len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "set notices", Message: "Some values are not valid, and nothing was changed.", Fields: wrong}
	}
	r.On, r.To = unique(want.On), unique(want.To)
	return s.write(ctx, user, r, version)
}

// Seen keeps the groups and the address of a person who has notices as they are now. It reads
// what is in memory, and writes at most once a day unless something changed.
func (s *Service) Seen(ctx context.Context, user governance.User) {
	if isPerson(user) != nil {
		return
	}
	text, version, err := s.Store.Known(ctx, nameOf(user.Name))
	if err != nil || text == "" {
		return
	}
	r, err := parse(text)
	if err != nil || r.Person != user.Name || s.Now().Sub(r.Seen) < renewed && r.Email == user.Email && slices.Equal(r.Groups, user.Groups) {
		return
	}
	r.Email = user.Email
	if err := s.write(ctx, user, r, version); err != nil && governance.KindOf(err) != governance.Conflict {
		s.Log.Warn("what is known of a person with notices is not kept", "error", err)
	}
}

// read returns the record of a person; an empty one if there is none.
func (s *Service) read(ctx context.Context, person string) (r record, version string, err error) {
	text, version, err := s.Store.Latest(ctx, nameOf(person))
	if err != nil || text == "" {
		return record{}, version, err
	}
	if r, err = parse(text); err != nil || r.Person != person { // of another version: it is replaced
		return record{}, version, nil
	}
	return r, version, nil
}

func parse(text string) (r record, err error) {
	err = json.Unmarshal([]byte(text), &r)
	return r, err
}

// write writes the record of a person, who is here now.
func (s *Service) write(ctx context.Context, user governance.User, r record, version string) error {
	r.Person, r.Groups, r.Seen = user.Name, user.Groups, s.Now().UTC()
	if user.Email != "" {
		r.Email = user.Email
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(text) > maxRecord {
		return &governance.Error{Kind: governance.Invalid, Op: "set notices", Message: "You are in too many groups for notices."}
	}
	ok, expires := false, r.Seen.Add(kept)
	if version == "" {
		ok, err = s.Store.Create(ctx, nameOf(user.Name), string(text), expires)
	} else {
		ok, err = s.Store.Update(ctx, nameOf(user.Name), string(text), expires, version)
	}
	if err == nil && !ok {
		return &governance.Error{Kind: governance.Conflict, Op: "set notices", Message: "Your notices were changed a moment ago. Reload the page, then try again."}
	}
	return err
}

// isPerson fails for users that no notices are for.
func isPerson(user governance.User) error {
	if user.Name == "" || user.Local || user.ServiceAccount || strings.HasPrefix(user.Name, "system:") {
		return &governance.Error{Kind: governance.Forbidden, Op: "set notices", Message: "Notices are for people who sign in."}
	}
	return nil
}

// allowed returns the receivers that the policy allows for notices.
func (s *Service) allowed(ctx context.Context) (list []v1alpha1.AlertReceiver, err error) {
	policy, err := s.Policy(ctx)
	if err != nil || policy == nil || policy.Spec.Alerts == nil {
		return nil, err
	}
	for _, r := range policy.Spec.Alerts.Receivers {
		if r.Notices != "" {
			list = append(list, r)
		}
	}
	return list, nil
}

// receivers returns the receivers that a person can choose: one of a team or a department only
// if they see that team, or one of those below the department.
func (s *Service) receivers(ctx context.Context, user governance.User) (list []Receiver, err error) {
	allowed, err := s.allowed(ctx)
	if err != nil || len(allowed) == 0 {
		return nil, err
	}
	scope, err := s.Access.Scope(ctx, user)
	if err != nil {
		return nil, err
	}
	teams, err := s.Teams(ctx)
	if err != nil {
		return nil, err
	}
	tree, err := s.Departments(ctx)
	if err != nil {
		return nil, err
	}
	sees := func(team string) bool {
		namespace := teams.Namespace(team)
		return namespace != "" && scope.Includes(namespace)
	}
	for _, r := range allowed {
		if r.Team != "" && !sees(r.Team) || r.Department != "" && !slices.ContainsFunc(tree.TeamsBelow(r.Department), sees) {
			continue
		}
		choice := Receiver{Name: r.Name, Type: string(r.Type), Team: r.Team, Department: r.Department}
		if r.Type == v1alpha1.EmailReceiver && user.Email == "" {
			choice.Problem = noEmail
		}
		list = append(list, choice)
	}
	return list, nil
}

// unique returns a list without duplicates, in its order.
func unique[T comparable](list []T) (once []T) {
	for _, one := range list {
		if !slices.Contains(once, one) {
			once = append(once, one)
		}
	}
	return once
}
