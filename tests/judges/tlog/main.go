// Judges a log by golang.org/x/mod/sumdb: reads a case as JSON, writes what Go says of it.
package main

import (
	"encoding/base64"
	"encoding/json"
	"os"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type question struct {
	Entries [][]byte   `json:"entries"` // of the log
	Vkey    string     `json:"vkey"`
	Note    string     `json:"note"`    // signed by us
	Skey    string     `json:"skey"`    // for Go to sign with
	Text    string     `json:"text"`    // for Go to sign
	Pairs   [][2]int64 `json:"pairs"`   // of sizes, the smaller first
	Ours    [][]string `json:"ours"`    // consistency proofs of those pairs, by us
	Records [][]string `json:"records"` // inclusion proofs of every entry, by us
	Hashes  []string   `json:"hashes"`  // roots of the sizes, by us
}

type answer struct {
	Roots       []string   `json:"roots"`
	Consistency [][]string `json:"consistency"`
	Inclusion   [][]string `json:"inclusion"`
	Signed      string     `json:"signed"`
	Opened      string     `json:"opened"`
	Accepted    int        `json:"accepted"` // of our proofs
	TilePaths   []string   `json:"tile_paths"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func texts(hashes []tlog.Hash) []string {
	found := []string{}
	for _, hash := range hashes {
		found = append(found, base64.StdEncoding.EncodeToString(hash[:]))
	}
	return found
}

func hashes(texts []string) []tlog.Hash {
	found := []tlog.Hash{}
	for _, text := range texts {
		raw, err := base64.StdEncoding.DecodeString(text)
		must(err)
		var hash tlog.Hash
		copy(hash[:], raw)
		found = append(found, hash)
	}
	return found
}

func main() {
	var q question
	must(json.NewDecoder(os.Stdin).Decode(&q))
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		found := []tlog.Hash{}
		for _, index := range indexes {
			found = append(found, stored[index])
		}
		return found, nil
	})
	var a answer
	size := int64(len(q.Entries))
	roots := []tlog.Hash{}
	for n := int64(0); n <= size; n++ {
		root, err := tlog.TreeHash(n, reader)
		must(err)
		roots = append(roots, root)
		if n < size {
			more, err := tlog.StoredHashes(n, q.Entries[n], reader)
			must(err)
			stored = append(stored, more...)
		}
	}
	a.Roots = texts(roots)
	for i, pair := range q.Pairs {
		proof, err := tlog.ProveTree(pair[1], pair[0], reader)
		must(err)
		a.Consistency = append(a.Consistency, texts(proof))
		must(tlog.CheckTree(hashes(q.Ours[i]), pair[1], roots[pair[1]], pair[0], roots[pair[0]]))
		a.Accepted++
	}
	for n := int64(0); n < size; n++ {
		proof, err := tlog.ProveRecord(size, n, reader)
		must(err)
		a.Inclusion = append(a.Inclusion, texts(proof))
		must(tlog.CheckRecord(hashes(q.Records[n]), size, roots[size], n, tlog.RecordHash(q.Entries[n])))
		a.Accepted++
	}
	for _, tile := range tlog.NewTiles(8, 0, 70000) {
		a.TilePaths = append(a.TilePaths, tile.Path())
	}
	verifier, err := note.NewVerifier(q.Vkey)
	must(err)
	opened, err := note.Open([]byte(q.Note), note.VerifierList(verifier))
	must(err)
	a.Opened = opened.Text
	signer, err := note.NewSigner(q.Skey)
	must(err)
	signed, err := note.Sign(&note.Note{Text: q.Text}, signer)
	must(err)
	a.Signed = string(signed)
	encoder := json.NewEncoder(os.Stdout)
	must(encoder.Encode(a))
}
