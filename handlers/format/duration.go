package format

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota"
)

// ShortAge formats a duration for people: 0.3 s, 12 s, 2 h 05 m, 3 d 04 h.
func ShortAge(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return Duration(d)
}

// Duration formats a duration in its two largest units.
func Duration(d time.Duration) string {
	seconds := int64(max(0, d) / time.Second)
	switch {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%d m %02d s", seconds/60, seconds%60)
	case seconds < 86400:
		return fmt.Sprintf("%d h %02d m", seconds/3600, seconds/60%60)
	}
	return fmt.Sprintf("%d d %02d h", seconds/86400, seconds/3600%24)
}

func Seconds(d time.Duration) string {
	return strconv.FormatInt(int64(d/time.Second), 10)
}

// Time formats a time in RFC 3339; "" for the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func Times(n int32) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Elapsed formats a duration: in whole minutes while it goes on, so that a row that
// only became older is not sent again each second.
func Elapsed(d time.Duration, goesOn bool) string {
	if goesOn {
		return Age(d)
	}
	return Duration(d)
}

// Age formats a duration in whole minutes.
func Age(d time.Duration) string {
	if d < time.Minute {
		return "under 1 m"
	}
	if d < time.Hour {
		return fmt.Sprintf("%d m", int(d.Minutes()))
	}
	return Duration(d)
}

// Hours formats an amount × ms, in units of which one is displayed, as hours with at most
// two decimals.
func Hours(amountMillis *big.Int, unit int64) string {
	hours := new(big.Rat).SetFrac(amountMillis, big.NewInt(unit*time.Hour.Milliseconds()))
	text := trimZeros(hours.FloatString(2))
	switch {
	case text == "0" && amountMillis.Sign() > 0:
		return lessThanShown
	case text == "-0":
		return ">-0.01"
	}
	return quota.Thousands(text)
}

// ExactSeconds formats the same as seconds, with all decimals.
func ExactSeconds(amountMillis *big.Int, unit int64) string {
	return trimZeros(new(big.Rat).SetFrac(amountMillis, big.NewInt(unit*1000)).FloatString(13)) // 1 / 1,024,000 has 13
}

// Money formats a cost with two decimals, and "–" without one.
func Money(cost *big.Rat) string {
	if cost == nil {
		return "–"
	}
	text := cost.FloatString(2)
	if text == "0.00" && cost.Sign() > 0 {
		return lessThanShown
	}
	return quota.Thousands(text)
}

// trimZeros removes decimals that are zero.
func trimZeros(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
}
