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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errKubectl is the error of a call that only kubectl can answer.
var errKubectl = errors.New("only kubectl answers this")

// call is a call of kubectl that is answered in process.
type call struct {
	verb           string   // get, patch or delete
	resources      []string // names of resources, such as jobs or job
	names          []string // of objects; all if it is empty
	namespace      string   // "" for all, and for resources without namespace
	selectors      []client.ListOption
	ignoreNotFound bool
	noWait         bool   // delete returns before the objects are gone
	output         string // of get: name or jsonpath
	template       string // of jsonpath
	patch          string
	merge          bool // it is a merge patch
}

// parse returns the call with these arguments. It returns errKubectl for other calls than
// those for the names or paths of objects, merge patches of one object, and deletions that do
// not wait and can be repeated.
func parse(args []string) (c call, err error) {
	if len(args) < 2 {
		return c, errKubectl
	}
	c.verb, c.namespace = args[0], metav1.NamespaceDefault
	var named []string
	for args = args[1:]; len(args) > 0; args = args[1:] {
		switch args[0] {
		case "-A":
			c.namespace = ""
		case "--ignore-not-found":
			c.ignoreNotFound = true
		case "--wait=false":
			c.noWait = true
		case "--type=merge":
			c.merge = true
		case "-n", "-l", "-o", "-p", "--field-selector":
			if len(args) < 2 {
				return c, errKubectl
			}
			if err := c.set(args[0], args[1]); err != nil {
				return c, err
			}
			args = args[1:]
		default:
			if strings.HasPrefix(args[0], "-") || strings.Contains(args[0], "/") {
				return c, errKubectl
			}
			named = append(named, args[0])
		}
	}
	if len(named) == 0 {
		return c, errKubectl
	}
	c.resources, c.names = strings.Split(named[0], ","), named[1:]
	one := len(c.resources) == 1 && len(c.names) == 1
	if len(c.names) > 0 && len(c.selectors) > 0 {
		return c, errKubectl
	}
	switch {
	case c.verb == "get" && c.output != "":
	case c.verb == "patch" && c.patch != "" && c.merge && one && c.output == "":
	case c.verb == "delete" && c.noWait && len(c.names) > 0 && (one || c.ignoreNotFound):
	default:
		return c, errKubectl
	}
	return c, nil
}

// set sets a flag that has a value.
func (c *call) set(flag, value string) error {
	switch flag {
	case "-n":
		c.namespace = value
	case "-p":
		c.patch = value
	case "-l":
		selector, err := labels.Parse(value)
		if err != nil {
			return errKubectl
		}
		c.selectors = append(c.selectors, client.MatchingLabelsSelector{Selector: selector})
	case "--field-selector":
		selector, err := fields.ParseSelector(value)
		if err != nil {
			return errKubectl
		}
		c.selectors = append(c.selectors, client.MatchingFieldsSelector{Selector: selector})
	case "-o":
		template, isPath := strings.CutPrefix(value, "jsonpath=")
		switch {
		case isPath:
			c.output, c.template = "jsonpath", template
		case value == "name":
			c.output = value
		default:
			return errKubectl
		}
	}
	return nil
}

// inProcess answers a call of kubectl in a tenth of the time. It returns errKubectl for other
// calls, and where kubectl has words of its own.
func (c *Cluster) inProcess(ctx context.Context, args []string) (string, error) {
	q, err := parse(args)
	if err != nil {
		return "", err
	}
	var found []unstructured.Unstructured
	for _, resource := range q.resources {
		mapping, err := c.mapping(resource)
		if err != nil {
			c.mapper.Reset() // the kind may be new
			return "", errKubectl
		}
		if q.verb != "get" {
			if err := c.write(ctx, mapping, q); err != nil {
				return "", err
			}
			continue
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
	return q.print(found)
}

// write patches or deletes the objects of a kind that a call names.
func (c *Cluster) write(ctx context.Context, mapping *meta.RESTMapping, q call) error {
	for _, name := range q.names {
		var o unstructured.Unstructured
		o.SetGroupVersionKind(mapping.GroupVersionKind)
		o.SetName(name)
		if mapping.Scope.Name() != meta.RESTScopeNameRoot {
			o.SetNamespace(q.namespace)
		}
		var err error
		if q.verb == "patch" {
			err = c.Client.Patch(ctx, &o, client.RawPatch(types.MergePatchType, []byte(q.patch)), client.FieldOwner("kubectl-patch"))
		} else if err = c.Client.Delete(ctx, &o, client.PropagationPolicy(metav1.DeletePropagationBackground)); q.ignoreNotFound {
			err = client.IgnoreNotFound(err)
		}
		if err != nil {
			return errKubectl
		}
	}
	return nil
}

// print returns what get prints of the objects that it found.
func (q call) print(found []unstructured.Unstructured) (string, error) {
	var out bytes.Buffer
	switch q.output {
	case "":
		return "", nil
	case "name":
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
func (c *Cluster) objects(ctx context.Context, mapping *meta.RESTMapping, q call) ([]unstructured.Unstructured, error) {
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
