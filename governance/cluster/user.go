package cluster

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reservedPrefix begins the user and group names that Kubernetes reserves. No
// reader acts under one.
const reservedPrefix = "system:"

// serviceAccountPrefix begins the user names of service accounts.
const serviceAccountPrefix = "system:serviceaccount:"

// authenticatedGroup is the group that the API server adds to every
// authenticated user, also to an impersonated one. A review must name it.
const authenticatedGroup = "system:authenticated"

// ClientAs returns a client that impersonates user, so that Kubernetes
// authorizes and audits the user. It reads from the API server, not from the
// cache. The local user of a console without sign-in acts as the console.
func (c *Cluster) ClientAs(user governance.User) (client.Client, error) {
	if err := c.writable("act as " + user.Name); err != nil {
		return nil, err
	}
	return c.clientAs(user)
}

// ReaderAs returns a reader of the API server that impersonates user.
func (c *Cluster) ReaderAs(user governance.User) (client.Reader, error) { return c.clientAs(user) }

func (c *Cluster) clientAs(user governance.User) (client.Client, error) {
	config, http, err := c.connectionAs(user)
	if err != nil {
		return nil, err
	}
	direct, err := client.New(config, client.Options{Scheme: Scheme, Mapper: c.Manager.GetRESTMapper(), HTTPClient: http})
	if err != nil {
		return nil, Translate("write", err)
	}
	return client.WithFieldOwner(direct, FieldManager+"-console"), nil
}

// connectionAs returns the configuration and the HTTP client of requests that
// impersonate user.
func (c *Cluster) connectionAs(user governance.User) (*rest.Config, *http.Client, error) {
	if user.Local {
		return c.Manager.GetConfig(), c.Manager.GetHTTPClient(), nil
	}
	if err := checkImpersonated(user); err != nil {
		return nil, nil, err
	}
	config := rest.CopyConfig(c.Manager.GetConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: user.Name, Groups: user.Groups}
	if user.ServiceAccount { // the API server adds its groups, and lets no other set them
		config.Impersonate.Groups = nil
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, Translate("connect as "+user.Name, err)
	}
	return config, client, nil
}

// LogAs opens the log of a container, impersonating user, so that Kubernetes
// authorizes and audits the user. The stream ends with ctx. Its error is that of
// the API server, whose message names what the kubelet answered.
func (c *Cluster) LogAs(ctx context.Context, user governance.User, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	config, http, err := c.connectionAs(user)
	if err != nil {
		return nil, err
	}
	pods, err := corev1client.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, Translate("read log", err)
	}
	return pods.Pods(namespace).GetLogs(pod, options).Stream(ctx)
}

// Allowed reports whether user may do what, by a SubjectAccessReview. It caches
// nothing; package access does.
func (c *Cluster) Allowed(ctx context.Context, user governance.User, what authorizationv1.ResourceAttributes) (bool, error) {
	if err := checkReader(user); err != nil {
		return false, err
	}
	groups := append(make([]string, 0, len(user.Groups)+1), user.Groups...)
	review, err := c.reviewClientset.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user.Name, Groups: append(groups, authenticatedGroup), ResourceAttributes: &what},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, Translate("ask whether "+what.Verb+" "+what.Resource+" is allowed", err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// checkReader is checkUser for questions about permissions, which are about accounts of
// Kubernetes too.
func checkReader(user governance.User) error {
	if user.ServiceAccount && strings.HasPrefix(user.Name, serviceAccountPrefix) {
		return nil
	}
	return checkUser(user)
}

// checkImpersonated is checkUser for the users whom the console impersonates, which are service
// accounts that an admin allowed too.
func checkImpersonated(user governance.User) error {
	if user.Writes {
		return checkReader(user)
	}
	return checkUser(user)
}

// checkUser rejects an empty or reserved user or group.
func checkUser(user governance.User) error {
	forbidden := user.Name == "" || strings.HasPrefix(user.Name, reservedPrefix)
	for _, group := range user.Groups {
		forbidden = forbidden || group == "" || strings.HasPrefix(group, reservedPrefix)
	}
	if forbidden {
		return &governance.Error{Kind: governance.Forbidden, Op: "act as " + user.Name, Message: "You do not have permission to do this."}
	}
	return nil
}

// WriteEvent creates an event as the console.
func (c *Cluster) WriteEvent(ctx context.Context, event *eventsv1.Event) error {
	_, err := c.reviewClientset.EventsV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{FieldManager: FieldManager})
	return Translate("write event", err)
}

// ConsoleAllowed reports whether the console's own account may do what, by a
// SelfSubjectAccessReview.
func (c *Cluster) ConsoleAllowed(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	review, err := c.reviewClientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, Translate("ask what the console may do", err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// TokenAudience is the audience of the tokens of service accounts that the console accepts.
const TokenAudience = "kuota"

// ServiceAccount returns the service account that a token with TokenAudience is of, by a
// TokenReview. ok is false for every other token.
func (c *Cluster) ServiceAccount(ctx context.Context, token string) (user governance.User, ok bool, err error) {
	review, err := c.reviewClientset.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{TokenAudience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return user, false, Translate("ask whose token it is", err)
	}
	status := review.Status
	if !status.Authenticated || !slices.Contains(status.Audiences, TokenAudience) || !strings.HasPrefix(status.User.Username, serviceAccountPrefix) {
		return user, false, nil
	}
	return governance.User{Name: status.User.Username, Groups: status.User.Groups, ServiceAccount: true}, true, nil
}
