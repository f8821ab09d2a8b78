package clustertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errKubectl is the error of a call that only kubectl can answer.
var errKubectl = errors.New("only kubectl answers this")

// query is what kubectl get is asked for.
type query struct {
	resources      []string // names of resources, such as jobs or job
	names          []string // of objects; all if it is empty
	namespace      string   // "" for all, and for resources without namespace
	selectors      []client.ListOption
	ignoreNotFound bool
	template       string // of jsonpath; names if it is empty
}

// parseGet returns what the arguments of kubectl ask for. It returns errKubectl unless they
// get the names or paths of objects.
func parseGet(args []string) (q query, err error) {
	if len(args) < 2 || args[0] != "get" {
		return q, errKubectl
	}
	q.namespace = metav1.NamespaceDefault
	named, printed := []string(nil), false
	for args = args[1:]; len(args) > 0; args = args[1:] {
		flag := args[0]
		switch flag {
		case "-A":
			q.namespace = ""
			continue
		case "--ignore-not-found":
			q.ignoreNotFound = true
			continue
		case "-n", "-l", "-o", "--field-selector":
		default:
			if strings.HasPrefix(flag, "-") || strings.Contains(flag, "/") {
				return q, errKubectl
			}
			named = append(named, flag)
			continue
		}
		if len(args) < 2 {
			return q, errKubectl
		}
		args = args[1:]
		switch value := args[0]; flag {
		case "-n":
			q.namespace = value
		case "-l":
			selector, err := labels.Parse(value)
			if err != nil {
				return q, err
			}
			q.selectors = append(q.selectors, client.MatchingLabelsSelector{Selector: selector})
		case "--field-selector":
			selector, err := fields.ParseSelector(value)
			if err != nil {
				return q, err
			}
			q.selectors = append(q.selectors, client.MatchingFieldsSelector{Selector: selector})
		case "-o":
			if q.template, printed = strings.CutPrefix(value, "jsonpath="); !printed && value == "name" {
				q.template, printed = "", true
			}
		}
	}
	if len(named) == 0 || !printed {
		return q, errKubectl
	}
	q.resources, q.names = strings.Split(named[0], ","), named[1:]
	return q, nil
}

// get answers kubectl get for the names or paths of objects in process, in a tenth of the
// time. It returns errKubectl for other calls, and where kubectl has words of its own.
func (c *Cluster) get(ctx context.Context, args []string) (string, error) {
	q, err := parseGet(args)
	if err != nil {
		return "", errKubectl
	}
	var found []unstructured.Unstructured
	for _, resource := range q.resources {
		mapping, err := c.mapping(resource)
		if err != nil {
			c.mapper.Reset() // the kind may be new
			return "", errKubectl
		}
		objects, err := c.objects(ctx, mapping, q)
		if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name != "" {
			return fmt.Sprintf("Error from server (%s): %v\n", status.Status().Reason, err), err
		} else if err != nil {
			c.mapper.Reset() // the kind may no longer exist
			return "", errKubectl
		}
		found = append(found, objects...)
	}
	var out bytes.Buffer
	if q.template == "" {
		for _, o := range found {
			fmt.Fprintf(&out, "%s/%s\n", strings.ToLower(o.GroupVersionKind().GroupKind().String()), o.GetName())
		}
		return out.String(), nil
	}
	path := jsonpath.New("get").AllowMissingKeys(true)
	if err := path.Parse(q.template); err != nil {
		return "", errKubectl
	}
	var data any
	if len(q.resources) == 1 && len(q.names) == 1 {
		if len(found) == 0 {
			return "", nil
		}
		data = found[0].Object
	} else {
		items := make([]any, len(found))
		for i := range found {
			items[i] = found[i].Object
		}
		data = map[string]any{"kind": "List", "items": items}
	}
	if err := path.Execute(&out, data); err != nil {
		return "", errKubectl
	}
	return out.String(), nil
}

// objects returns the objects of a kind that q asks for.
func (c *Cluster) objects(ctx context.Context, mapping *meta.RESTMapping, q query) ([]unstructured.Unstructured, error) {
	namespace := q.namespace
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	if len(q.names) == 0 {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind)
		err := c.Client.List(ctx, list, append(q.selectors, client.InNamespace(namespace))...)
		return list.Items, err
	}
	var found []unstructured.Unstructured
	for _, name := range q.names {
		var o unstructured.Unstructured
		o.SetGroupVersionKind(mapping.GroupVersionKind)
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &o); err == nil {
			found = append(found, o)
		} else if !q.ignoreNotFound || !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return found, nil
}

// mapping returns the kind of a resource, in any of the forms that kubectl takes but short
// names.
func (c *Cluster) mapping(resource string) (*meta.RESTMapping, error) {
	parsed := schema.ParseGroupResource(resource)
	kind, err := c.mapper.KindFor(parsed.WithVersion(""))
	if err != nil {
		return nil, err
	}
	return c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

func newMapper(config *rest.Config) (*restmapper.DeferredDiscoveryRESTMapper, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), nil
}
