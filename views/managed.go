package views

import "kuota.dev/kuota/views/ui"

// Managed is shown instead of the form of an object that Flux or Argo CD manages.
type Managed struct {
	Chrome
	UpLabel, UpURL string
	Sentence       string // the tool that manages it, and where to change it
	Refused        bool   // whether a change was rejected
	Text           string // the saved or typed object as YAML
	Typed          bool   // whether Text is the typed object
	NotImported    []string
}

func (p Managed) tone() ui.NoticeTone {
	if p.Refused {
		return ui.NoticeBad
	}
	return ui.NoticeInfo
}

func (p Managed) textTitle() string {
	if p.Typed {
		return "Your changes, for that repository"
	}
	return "What is saved now"
}
