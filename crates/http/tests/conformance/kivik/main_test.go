// Runs kivik's conformance suite for CouchDB 3.3 against the server that CONFORMANCE_DSN names.
package conformance

import (
	"net/url"
	"os"
	"testing"
	_ "unsafe" // for go:linkname

	_ "github.com/go-kivik/kivik/v4/couchdb"
	couchtest "github.com/go-kivik/kivik/v4/couchdb/test"
	"github.com/go-kivik/kivik/v4/kiviktest"
	"github.com/go-kivik/kivik/v4/kiviktest/kt"
)

// What the suite expects. It has the address and the password of its authors' server for replications.
//
//go:linkname suites github.com/go-kivik/kivik/v4/kiviktest.suites
var suites map[string]kt.SuiteConfig

func TestConformance(t *testing.T) {
	dsn := os.Getenv("CONFORMANCE_DSN")
	if dsn == "" {
		t.Skip("CONFORMANCE_DSN names no server")
	}
	couchtest.RegisterCouchDBSuites()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	address.Path = "/"
	known := address.String()
	address.User = nil
	config := suites[kiviktest.SuiteCouch33]
	config["Replicate.NotFoundDB"] = known + "foo"
	config["Replicate.prefix"] = address.String()
	config["Replicate/RW/Admin.prefix"] = known
	clients, err := kiviktest.ConnectClients(t, "couch", dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Tests may write: the server is made for this run alone.
	clients.RW = true
	kiviktest.RunTestsInternal(t, clients, kiviktest.SuiteCouch33)
}
