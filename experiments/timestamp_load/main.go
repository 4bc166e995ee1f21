// Commits to random entries at a service of an event, and waits for their proofs.
//
// Each connection is of somebody else, from one of several addresses of this host: a service has
// limits for each address. Those that are kept are made first; then it prints an empty line, and at
// last one JSON object: how many were acknowledged and proved in how many seconds, the quantiles of
// both waits in seconds, and answers other than 200 by their status.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"
)

var (
	url     = flag.String("url", "", "where the service is")
	ca      = flag.String("ca", "", "file of its authority, PEM")
	tickets = flag.String("tickets", "", "file of tokens, one a line; each request takes the next")
	n       = flag.Int("n", 1000, "requests")
	rate    = flag.Float64("rate", 0, "requests a second; 0: as many as connections allow")
	most    = flag.Int("connections", 64, "connections at a time")
	from    = flag.Int("addresses", 32, "they come from: 127.0.0.1 and those that follow")
	batch   = flag.Int("batch", 1, "entries a request")
	isNew   = flag.Bool("new", false, "a new TLS connection for each request, kept for its proof")
	proofs  = flag.Bool("proofs", false, "wait for the proof of the last entry of each request")
)

// A proof is asked for so long after the acknowledgement, and again when the service says.
const (
	firstProof = time.Second
	giveUp     = 60 * time.Second
	handshakes = 64
)

type results struct {
	sync.Mutex
	acknowledged, proved []float64
	last                 time.Time // of those that were acknowledged
	others               map[string]int
}

func (r *results) other(what string) {
	r.Lock()
	defer r.Unlock()
	r.others[what]++
}

func main() {
	flag.Parse()
	tokens := readTokens()
	free := newClients()
	if !*isNew {
		connect(free)
	}
	fmt.Println()
	found := &results{others: map[string]int{}}
	var all sync.WaitGroup
	start := time.Now()
	for i := 0; i < *n; i++ {
		if *rate > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(float64(i) / *rate * 1e9))))
		}
		client := <-free
		all.Add(1)
		go func() {
			defer all.Done()
			due := time.Now()
			entry := commit(client, tokens[i%len(tokens)], found)
			if !*isNew {
				free <- client
			}
			if entry != "" && *proofs {
				prove(client, entry, due, found)
			}
			if *isNew {
				client.CloseIdleConnections()
				free <- client
			}
		}()
	}
	all.Wait()
	say(found, found.last.Sub(start).Seconds(), time.Since(start).Seconds())
}

func readTokens() []string {
	file, err := os.Open(*tickets)
	check(err)
	defer file.Close()
	var tokens []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		tokens = append(tokens, lines.Text())
	}
	return tokens
}

// newClients returns one for each connection; who was free for longest comes next.
func newClients() chan *http.Client {
	pem, err := os.ReadFile(*ca)
	check(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	free := make(chan *http.Client, *most)
	for i := range *most {
		address := net.IPv4(127, 0, 0, byte(1+i%*from))
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: address}}
		free <- &http.Client{Timeout: giveUp, Transport: &http.Transport{
			DialContext:     dialer.DialContext,
			TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS13},
			MaxConnsPerHost: 1,
		}}
	}
	return free
}

// connect makes the connection of each client.
func connect(free chan *http.Client) {
	var all sync.WaitGroup
	for range handshakes {
		all.Add(1)
		go func() {
			defer all.Done()
			for range (*most + handshakes - 1) / handshakes {
				client := <-free
				response, err := client.Get(*url + "/checkpoint")
				check(err)
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
				free <- client
			}
		}()
	}
	all.Wait()
}

// commit returns the last entry, if it was acknowledged.
func commit(client *http.Client, token string, found *results) string {
	entries := make([]string, *batch)
	for i := range entries {
		var raw [32]byte
		rand.Read(raw[:])
		entries[i] = hex.EncodeToString(raw[:])
	}
	var entry any = entries
	if *batch == 1 {
		entry = entries[0]
	}
	body, err := json.Marshal(map[string]any{"entry": entry, "ticket": token})
	check(err)
	begun := time.Now()
	response, err := client.Post(*url+"/commit", "application/json", bytes.NewReader(body))
	if err != nil {
		found.other("commit: no answer")
		return ""
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	if response.StatusCode != 200 {
		found.other(fmt.Sprintf("commit: %d", response.StatusCode))
		return ""
	}
	found.Lock()
	defer found.Unlock()
	found.last = time.Now()
	found.acknowledged = append(found.acknowledged, found.last.Sub(begun).Seconds())
	return entries[len(entries)-1]
}

func prove(client *http.Client, entry string, begun time.Time, found *results) {
	time.Sleep(firstProof)
	for time.Since(begun) < giveUp {
		response, err := client.Get(*url + "/proof/" + entry)
		if err != nil {
			found.other("proof: no answer")
			return
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode == 200 {
			found.Lock()
			defer found.Unlock()
			found.proved = append(found.proved, time.Since(begun).Seconds())
			return
		}
		wait, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if err != nil {
			found.other(fmt.Sprintf("proof: %d", response.StatusCode))
			return
		}
		if response.StatusCode != 202 {
			found.other(fmt.Sprintf("proof: %d, asked for again", response.StatusCode))
		}
		time.Sleep(time.Duration(wait) * time.Second)
	}
	found.other("proof: given up")
}

func say(found *results, acknowledged, all float64) {
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"acknowledged":    len(found.acknowledged) * *batch,
		"acknowledged_s":  acknowledged,
		"proved":          len(found.proved),
		"all_s":           all,
		"acknowledgement": quantiles(found.acknowledged),
		"proof":           quantiles(found.proved),
		"other":           found.others,
	}))
}

func quantiles(times []float64) map[string]float64 {
	sort.Float64s(times)
	at := map[string]float64{}
	for name, share := range map[string]float64{"p50": 0.5, "p99": 0.99} {
		if len(times) > 0 {
			at[name] = times[int(share*float64(len(times)-1))]
		}
	}
	return at
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
