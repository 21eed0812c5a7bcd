# Everything that is done here, by name. `make` lists it.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help changelog package try-package setup ready build demo test lint deny bench torture lab-quick lab-full lab-plan

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## Bring what building needs; says what it installs, asks for root only if a system package is missing
	@rm -f target/.setup
	@scripts/ready

ready:
	@scripts/ready

build: ready ## The server, optimised: target/release/scrinium
	@# Nothing of .cargo/config.toml: the program finds its library beside itself, not in the folder of who built it.
	@# Without Node the server says in the place of its web console what is missing.
	@web=$$(scripts/web build target/web) || [ $$? -eq 3 ]; \
	  CARGO_ENCODED_RUSTFLAGS= SCRINIUM_WEB=$$web cargo build --release -p scrinium-server
	@library=$$(sed -n 's/^ROCKSDB_LIB_DIR = "\(.*\)"$$/\1/p' .cargo/config.toml); \
	  [ ! -e "$$library/librocksdb.so" ] || cp --update "$$library/librocksdb.so" $${CARGO_TARGET_DIR:-target}/release/

demo: build ## A server with people and real mail, load on it, and a report
	@scripts/demo

test: ready ## Everything that must hold: lints, all tests, dependencies
	@scripts/test

lint: ready ## Layout of the code and clippy alone
	@scripts/lint

deny: ready ## Licences, bans and sources of dependencies alone
	@scripts/deny

bench: ready ## The benchmarks: all, or one by NAME=view-build; writes BENCHMARKS.md
	@scripts/bench $(NAME)

lab-quick: build ## Every experiment of the laboratory in its quick form, and one page of all reports
	@scripts/lab quick

lab-full: build ## One experiment in its full form by NAME=users, or all in a night; reports go to docs/results too
	@scripts/lab full $(NAME)

lab-plan: build ## The planner's forecast held against a measurement on this machine; goes to docs/results too
	@scripts/lab plan

changelog: ready ## The changes of the next release; VERSION=0.2.0 moves them into CHANGELOG.md
	@cargo run --quiet -p scrinium-tidy --bin changelog -- $(if $(VERSION),$(VERSION) $(shell date --utc +%F))

package: ready ## A release in target/package: Debian package, archive, container, licences, SBOM
	@scripts/package

try-package: ## Tries the package in a bare Debian root: as root, after make package
	@scripts/try-package

torture: ready ## Crash, property and fuzz tests for long: all, or those of CRATES="store log"
	@scripts/torture $(CRATES)
