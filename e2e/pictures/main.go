// Command pictures takes the pictures of README.md and docs from a running instance
// with SAMPLE=still, each in light and in dark. It also writes a digest of what
// determines the look of pages, with which make check finds out that the pictures are
// of other pages. It must not change the instance.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/playwright-community/playwright-go"
)

// picture is one page as a user sees it.
type picture struct {
	name   string
	user   string
	path   string
	height int // of the picture, in pixels
	// prepare changes the open page, and returns when the picture can be taken.
	prepare func(page playwright.Page) error
}

const (
	width     = 1280
	patience  = 180_000.0 // milliseconds
	digestOf  = "pages.sha256"
	browser   = "/usr/bin/chromium-headless-shell"
	passwords = "kuota-" // followed by the name of the user
)

var pictures = []picture{
	// Its simulated utilization begins after the start of the instance, and a task is idle
	// after a minute; then alerts of two teams fire.
	{name: "dashboard", user: "admin", path: "/", height: 760, prepare: func(page playwright.Page) error {
		if err := shown(page, ".bell .count:has-text('2')"); err != nil {
			return err
		}
		return shown(page, "#idle-now")
	}},
	// A task of the still sample that waits, because its team may borrow less than it requests.
	{name: "task", user: "ada", path: "/tasks/hyperpod-ns-vision/Job/segmentation-sweep", height: 1180, prepare: func(page playwright.Page) error {
		return shown(page, "#checked[data-state=verified]")
	}},
	{name: "allocation", user: "admin", path: "/policies/allocations/new", height: 1000, prepare: func(page playwright.Page) error {
		const row = ".row:has(input[value='ml.g6.12xlarge'])"
		for _, typed := range [][2]string{{"#team", "audio"}, {"#member-0-name", "audio-team"}, {row + " input[name$=accelerators]", "2"}} {
			if err := page.Locator(typed[0]).Fill(typed[1]); err != nil {
				return err
			}
		}
		if err := shown(page, row+" summary:has-text('24 vCPU')"); err != nil {
			return err
		}
		if err := shown(page, "#effect:not(:has-text('scheduler simulates'))"); err != nil {
			return err
		}
		return page.Locator(row + " input[name$=accelerators]").Blur()
	}},
}

func main() {
	address := flag.String("url", "", "address of the instance")
	driver := flag.String("driver", "", "folder of the browser's driver, which make browser fills")
	out := flag.String("out", "docs/images", "folder of the pictures")
	check := flag.Bool("check", false, "only report whether pages have changed since the pictures were taken")
	flag.Parse()
	err := error(nil)
	if *check {
		err = compare(*out)
	} else {
		err = take(*address, *driver, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// take writes all pictures and the digest of the pages.
func take(address, driver, out string) error {
	runner, err := playwright.Run(&playwright.RunOptions{DriverDirectory: driver, Stderr: os.Stderr})
	if err != nil {
		return fmt.Errorf("start the browser driver that make browser installs: %w", err)
	}
	defer func() { _ = runner.Stop() }()
	chromium, err := runner.Chromium.Launch(playwright.BrowserTypeLaunchOptions{ExecutablePath: playwright.String(browser), Args: []string{"--no-sandbox"}})
	if err != nil {
		return fmt.Errorf("start the browser: %w", err)
	}
	defer func() { _ = chromium.Close() }()
	for _, p := range pictures {
		if err := p.take(chromium, address, out); err != nil {
			return fmt.Errorf("picture %s: %w", p.name, err)
		}
	}
	sum, err := digest()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, digestOf), []byte(sum+"\n"), 0o644)
}

func (p picture) take(chromium playwright.Browser, address, out string) error {
	for scheme, name := range map[*playwright.ColorScheme]string{playwright.ColorSchemeLight: "light", playwright.ColorSchemeDark: "dark"} {
		context, err := chromium.NewContext(playwright.BrowserNewContextOptions{
			BaseURL: playwright.String(address), ColorScheme: scheme, ReducedMotion: playwright.ReducedMotionReduce,
			Viewport: &playwright.Size{Width: width, Height: p.height}, Locale: playwright.String("en-US"), TimezoneId: playwright.String("UTC"),
		})
		if err != nil {
			return err
		}
		err = p.shoot(context, filepath.Join(out, p.name+"-"+name+".png"))
		if err := errors.Join(err, context.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (p picture) shoot(context playwright.BrowserContext, file string) error {
	page, err := context.NewPage()
	if err != nil {
		return err
	}
	page.SetDefaultTimeout(patience)
	if err := signIn(page, p.user); err != nil {
		return fmt.Errorf("sign in as %s: %w", p.user, err)
	}
	if _, err := page.Goto(p.path); err != nil {
		return err
	}
	if err := p.prepare(page); err != nil {
		return err
	}
	_, err = page.Screenshot(playwright.PageScreenshotOptions{Path: playwright.String(file), Animations: playwright.ScreenshotAnimationsDisabled})
	return err
}

// signIn signs a sample user in at the provider of the local cluster.
func signIn(page playwright.Page, user string) error {
	if _, err := page.Goto("/auth/login"); err != nil {
		return err
	}
	for name, value := range map[string]string{"username": user, "password": passwords + user} {
		if err := page.Locator("input[name=" + name + "]").Fill(value); err != nil {
			return err
		}
	}
	if err := page.Locator("button[type=submit]").First().Click(); err != nil {
		return err
	}
	return shown(page, "nav")
}

// shown waits until the page shows an element.
func shown(page playwright.Page, selector string) error {
	return page.Locator(selector).First().WaitFor()
}

// looks are the folders and kinds of files that determine how pages look.
var looks = map[string][]string{"views": {".templ"}, "static": {".css", ".js", ".svg"}}

// digest returns a digest of everything that determines how pages look.
func digest() (string, error) {
	var files []string
	for folder, kinds := range looks {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && slices.Contains(kinds, filepath.Ext(path)) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return "", fmt.Errorf("list what pages consist of: %w", err)
		}
	}
	slices.Sort(files)
	sum := sha256.New()
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("read what pages consist of: %w", err)
		}
		fmt.Fprintf(sum, "%s %x\n", name, sha256.Sum256(content))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// compare prints a note if the pages have changed since the pictures were taken. That is
// no error: a picture is taken again when a reader would see the difference.
func compare(out string) error {
	taken, err := os.ReadFile(filepath.Join(out, digestOf))
	if err != nil {
		return fmt.Errorf("read the digest of the pictures: %w", err)
	}
	now, err := digest()
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(taken)) != now {
		fmt.Println("note: pages have changed since the pictures in docs/images were taken; make pictures takes them again")
	}
	return nil
}
