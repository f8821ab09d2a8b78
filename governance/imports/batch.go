package imports

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/document"
)

// BatchShares are the shares of a fair-share scheduling policy of AWS Batch.
type BatchShares struct {
	Shares []v1alpha1.Share
	// DecaySeconds is the half-life of usage, which the cluster policy sets for all
	// teams; 0 if the text has none.
	DecaySeconds int64
	// Problems are the parts that were not imported or were changed.
	Problems governance.FieldErrors
}

// defaultWeightFactor is what AWS Batch uses for a share without a weight factor, and
// minDecaySeconds what shareDecaySeconds 0 means there.
const (
	defaultWeightFactor = "1"
	minDecaySeconds     = 600
)

type fairsharePolicy struct {
	ShareDecaySeconds  document.Decimal `json:"shareDecaySeconds"`
	ComputeReservation document.Decimal `json:"computeReservation"`
	ShareDistribution  []struct {
		ShareIdentifier string           `json:"shareIdentifier"`
		WeightFactor    document.Decimal `json:"weightFactor"`
	} `json:"shareDistribution"`
}

// ReadBatch reads the fairsharePolicy of a scheduling policy of AWS Batch: itself, the
// input of create-scheduling-policy, or the first policy of describe-scheduling-policies.
// In AWS Batch a smaller weight factor gets more, so that the weight is its inverse.
func ReadBatch(text []byte) BatchShares {
	documents, problems := document.Read(text)
	read := BatchShares{Problems: problems}
	if len(documents) == 0 {
		return read
	}
	node, path := documents[0], ""
	if list := node.Get("schedulingPolicies"); list != nil && len(list.Items) > 0 {
		node, path = list.Items[0], "schedulingPolicies[0]"
		if n := len(list.Items); n > 1 {
			read.Problems.Addf("schedulingPolicies", "has %d policies; the first was imported", n)
		}
	}
	if inner := node.Get("fairsharePolicy"); inner != nil {
		node, path = inner, document.Child(path, "fairsharePolicy")
	}
	if !node.Has("shareDistribution") {
		read.Problems.Addf(path, "has no shareDistribution; paste the fairsharePolicy of a scheduling policy of AWS Batch")
		return read
	}
	var policy fairsharePolicy
	read.Problems = append(read.Problems, node.Decode(&policy, path).Problems...)
	if seconds, ok := document.ParseInt(string(policy.ShareDecaySeconds)); ok && seconds >= 0 {
		read.DecaySeconds = max(seconds, minDecaySeconds)
	}
	if r := policy.ComputeReservation; r != "" && strings.Trim(string(r), "0.") != "" {
		read.Problems.Addf(document.Child(path, "computeReservation"), "%s %% for shares that are not active is not imported: Kueue reserves nothing for them", r)
	}
	var factors []*big.Rat
	seen := map[string]bool{}
	for i, share := range policy.ShareDistribution {
		at := document.Index(document.Child(path, "shareDistribution"), i)
		if share.WeightFactor == "" {
			share.WeightFactor = defaultWeightFactor
		}
		name := strings.ToLower(strings.TrimSuffix(share.ShareIdentifier, "*"))
		factor, ok := document.ParseRat(string(share.WeightFactor))
		switch {
		case len(name) > v1alpha1.MaxShareName || !v1alpha1.ValidName(name):
			read.Problems.Addf(document.Child(at, "shareIdentifier"), "%s is not a valid share: use up to %d letters, digits and hyphens; ignored", document.Quote(share.ShareIdentifier), v1alpha1.MaxShareName)
		case seen[name]:
			read.Problems.Addf(document.Child(at, "shareIdentifier"), "%s is the same share as an earlier one; ignored", document.Quote(share.ShareIdentifier))
		case !ok || factor.Sign() <= 0:
			read.Problems.Addf(document.Child(at, "weightFactor"), "%s is not a number above 0; share %s is ignored", document.Quote(string(share.WeightFactor)), name)
		case len(read.Shares) == v1alpha1.MaxShares:
			read.Problems.Addf(document.Child(at, "shareIdentifier"), "a team has at most %d shares; ignored", v1alpha1.MaxShares)
		default:
			if strings.HasSuffix(share.ShareIdentifier, "*") {
				read.Problems.Addf(document.Child(at, "shareIdentifier"), "%s is imported as the one share %s: tasks name the share itself, not a prefix", document.Quote(share.ShareIdentifier), name)
			}
			seen[name] = true
			factors = append(factors, factor)
			read.Shares = append(read.Shares, v1alpha1.Share{Name: name})
		}
	}
	weights, exact := inverse(factors)
	for i := range read.Shares {
		read.Shares[i].Weight = weights[i]
	}
	if !exact {
		read.Problems.Addf(document.Child(path, "shareDistribution"), "the weights are rounded to whole numbers up to %d", v1alpha1.MaxShareWeight)
	}
	return read
}

// inverse returns whole numbers that are in proportion to the inverses of factors, which
// are above 0: the smallest ones if these are in bounds, else rounded ones.
func inverse(factors []*big.Rat) (weights []int32, exact bool) {
	common := big.NewInt(1) // multiple of all numerators, by which every inverse is whole
	for _, f := range factors {
		divisor := new(big.Int).GCD(nil, nil, common, f.Num())
		common.Mul(common, new(big.Int).Div(f.Num(), divisor))
	}
	whole := make([]*big.Int, len(factors))
	divisor, most := new(big.Int), new(big.Int)
	for i, f := range factors {
		whole[i] = new(big.Int).Mul(f.Denom(), new(big.Int).Div(common, f.Num()))
		divisor.GCD(nil, nil, divisor, whole[i])
		if whole[i].Cmp(most) > 0 {
			most.Set(whole[i])
		}
	}
	bound := big.NewInt(v1alpha1.MaxShareWeight)
	exact = len(whole) == 0 || new(big.Int).Div(most, divisor).Cmp(bound) <= 0
	for _, w := range whole {
		if exact {
			w.Div(w, divisor)
		} else {
			w.Mul(w, bound).Add(w, new(big.Int).Rsh(most, 1)).Div(w, most) // rounded
		}
		weights = append(weights, int32(max(1, w.Int64())))
	}
	return weights, exact
}

// Notes returns the problems as lines.
func (b BatchShares) Notes() (lines []string) {
	for _, p := range b.Problems {
		lines = append(lines, strings.TrimPrefix(fmt.Sprintf("%s: %s.", p.Path, p.Message), ": "))
	}
	return slices.Compact(lines)
}
