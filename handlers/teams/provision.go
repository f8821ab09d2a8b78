package teams

import (
	"fmt"
	"math/big"
	"strconv"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
	teamviews "kuota.dev/kuota/views/teams"
)

// provisionInputs are the inputs of an elastic task that asks for nodes.
type provisionInputs struct {
	growth      string // Provision, or empty
	unscheduled string // pods
	provision   string // seconds
}

func (f *provisionInputs) inputs() map[string]*string {
	return map[string]*string{"growth": &f.growth, "unscheduled": &f.unscheduled, "provision": &f.provision}
}

// set sets the fields of a policy. whole parses a number of a field.
func (f *provisionInputs) set(p *v1alpha1.ElasticPolicy, whole func(value *int32, field, text string, least, most int64)) {
	if f.growth != "" {
		p.Growth = v1alpha1.Growth(f.growth)
	}
	if f.unscheduled != "" {
		p.MaxUnscheduledReplicas = new(int32(1))
		whole(p.MaxUnscheduledReplicas, "maxUnscheduledReplicas", f.unscheduled, 1, v1alpha1.MaxReplicas)
	}
	whole(&p.ProvisionTimeoutInSeconds, "provisionTimeoutInSeconds", f.provision, 1, v1alpha1.MaxTimeoutSeconds)
}

// express sets the inputs from a policy.
func (f *provisionInputs) express(p *v1alpha1.ElasticPolicy) {
	*f = provisionInputs{}
	if !p.Provisions() {
		return
	}
	f.growth, f.provision = string(p.Growth), strconv.Itoa(int(p.ProvisionTimeoutInSeconds))
	if n := p.MaxUnscheduledReplicas; n != nil {
		f.unscheduled = strconv.Itoa(int(*n))
	}
}

// view returns the inputs with their errors, by id.
func (f *provisionInputs) view(errs map[string]string) teamviews.ProvisionFields {
	amount := func(id, value string) views.AmountField {
		return views.AmountField{TextField: views.TextField{Value: value, Error: errs[id]}}
	}
	v := teamviews.ProvisionFields{
		Asks: f.growth == string(v1alpha1.GrowthProvision), Error: errs["growth"], Unscheduled: amount("unscheduled", f.unscheduled), Timeout: amount("provision", f.provision),
	}
	v.Unscheduled.Default, v.Timeout.Default = "one step", strconv.Itoa(int(v1alpha1.DefaultElasticPolicy().ProvisionTimeoutInSeconds))
	return v
}

// askWords describes what an elastic task would ask nodes for; empty for nothing.
func askWords(n *submit.NodeRequest, p submit.Plan) string {
	if n == nil {
		return ""
	}
	nodes := "nodes for " + format.Pods(n.Pods)
	if n.Nodes > 0 {
		nodes = fmt.Sprintf("%s of %s", format.Count(int(n.Nodes), "node"), p.QueuePool.Name)
	}
	text := fmt.Sprintf("Up to %s, it would ask for %s", format.Pods(n.Size), nodes)
	if most := p.Elastic.MaxUnscheduledReplicas; most == nil {
		text += ", one step at a time"
	} else if *most < n.Pods {
		text += fmt.Sprintf(", of at most %s at once", format.Pods(*most))
	}
	return text + "." + priceWords(n.Own, n.Borrowed, n.Currency)
}

// priceWords describes what an hour of compute costs; empty if that is not known.
func priceWords(own, borrowed *big.Rat, currency string) string {
	switch {
	case own == nil:
		return ""
	case own.Cmp(borrowed) == 0:
		return fmt.Sprintf(" An hour of them costs %s %s.", format.Money(own), currency)
	}
	return fmt.Sprintf(" An hour of them costs %s %s within the team's quota, and %s %s borrowed.", format.Money(own), currency, format.Money(borrowed), currency)
}
