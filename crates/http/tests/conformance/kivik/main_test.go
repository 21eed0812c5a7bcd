// Runs kivik's conformance suite for CouchDB 3.3 against the server that CONFORMANCE_DSN names.
package conformance

import (
	"os"
	"testing"

	_ "github.com/go-kivik/kivik/v4/couchdb"
	couchtest "github.com/go-kivik/kivik/v4/couchdb/test"
	"github.com/go-kivik/kivik/v4/kiviktest"
)

func TestConformance(t *testing.T) {
	dsn := os.Getenv("CONFORMANCE_DSN")
	if dsn == "" {
		t.Skip("CONFORMANCE_DSN names no server")
	}
	couchtest.RegisterCouchDBSuites()
	clients, err := kiviktest.ConnectClients(t, "couch", dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Tests may write: the server is made for this run alone.
	clients.RW = true
	kiviktest.RunTestsInternal(t, clients, kiviktest.SuiteCouch33)
}
