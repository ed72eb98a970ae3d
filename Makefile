# One entry point for all work on Quelea; each target says what it does.
# What the tests install and build lives in ${QUELEA_CACHE:-~/.cache/quelea}, outside the checkout.

SHELL := /bin/bash
PYTHON ?= python3
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
PROFILE ?= release
BINARY := $(TARGET)/$(PROFILE:dev=debug)/quelea
# The workspace of load generator, simulator and plots; it shares the product's target directory.
EXPERIMENTS := --manifest-path experiments/Cargo.toml
IN_EXPERIMENTS := --locked --target-dir $(TARGET) $(EXPERIMENTS)

# Finds dependencies that nothing uses.
CACHE := $(or $(QUELEA_CACHE),$(HOME)/.cache/quelea)
MACHETE := $(CACHE)/cargo-machete-0.9.2/bin/cargo-machete

.PHONY: stock-exchange help run build bench-build check test test-hostile test-console test-kubernetes test-cassandra test-rabbitmq cassandra cassandra-add cassandra-stop cassandra-clear lint bench bench-compare papers papers-full cmq-profile soak fuzz sim clean

help: ## Lists the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

run: build ## Builds the release and starts the broker; data in ./quelea-data
	exec $(BINARY) serve

build: ## Builds the release binary, with the console where Node.js is (20.19 or later); FEATURES=cassandra-tls adds to it
	@console=$$(QUELEA_CACHE=$(CACHE) console/build.sh) && set -x && \
	QUELEA_CONSOLE_DIST=$$console cargo build --locked --profile $(PROFILE) -p quelea-server $${console:+--features console} $(if $(FEATURES),--features $(FEATURES))

bench-build: ## Builds the load generator beside the release binary, where `quelea bench` finds it
	cargo build --profile $(PROFILE) -p quelea-bench $(IN_EXPERIMENTS)

check: ## The inner loop, nothing from the network: format, lints, the workspace's unit and story tests
	QUELEA_QUICK=1 $(PYTHON) tests/run.py format rust

test: ## Runs all tests: those of `check`, and real clients (AMQP, SQS, CMQ and elastic queues, from five languages) against a started broker
	$(PYTHON) tests/run.py $(SUITES)

test-hostile: ## Attacks a broker as the suite `hostile` of `make test` does, with more of everything
	QUELEA_HOSTILE_LARGE=1 $(PYTHON) tests/run.py hostile

test-console: ## Runs the console in Chromium as the suite `console` of `make test` does, and what takes longer: ten thousand queues
	QUELEA_CONSOLE_WHOLE=1 $(PYTHON) tests/run.py console

test-kubernetes: ## Runs the Kubernetes provider and the Helm chart against a real API server, which is compiled from its sources once (a quarter of an hour)
	$(PYTHON) tests/run.py kubernetes

test-cassandra: ## Runs replicated queues on one node of Cassandra as the suite `cassandra` of `make test` does, and what takes longer: earlier schemas, consistency ONE; on three nodes, which are killed, frozen and cut off; then all SQS clients against three front-ends that take turns; and directories of elastic queues that share a node
	QUELEA_CASSANDRA_WHOLE=1 $(PYTHON) tests/run.py cassandra cassandra_faults elastic_cassandra_all cassandra_sqs

test-rabbitmq: ## Runs the suites of the AMQP clients and of the management API against Debian's RabbitMQ too, takes definitions from it and to it, and compares what clients see in random scenarios
	$(PYTHON) tests/run.py rabbitmq

CASSANDRA := cd tests && $(PYTHON) -m harness.cassandra
cassandra: ## Runs Apache Cassandra on 127.0.0.1 and the addresses that follow, ready when it returns (N=3)
	$(CASSANDRA) start --nodes $${N:-1}

cassandra-add: ## One node more
	$(CASSANDRA) add

cassandra-stop: ## Stops them; what they stored stays
	$(CASSANDRA) stop

cassandra-clear: ## Stops them, and removes what they stored
	$(CASSANDRA) clear

lint: $(MACHETE) ## Checks format and lints, warnings being errors
	cargo fmt --all --check
	cargo fmt --all --check $(EXPERIMENTS)
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --workspace --all-targets --no-deps $(IN_EXPERIMENTS) -- -D warnings
	cargo clippy --locked -p quelea-elastic-directory --features etcd --all-targets -- -D warnings
	cargo clippy --locked -p quelea-elastic-directory --features kubernetes --all-targets -- -D warnings
	$(MACHETE)
	@if command -v cargo-deny >/dev/null; then cargo deny --offline check bans licenses sources && cargo deny --offline $(EXPERIMENTS) check --config deny.toml bans licenses sources; else echo "cargo-deny is not installed: licences and bans were not checked"; fi

$(MACHETE):
	cargo install --locked --quiet --root $(CACHE)/cargo-machete-0.9.2 cargo-machete@0.9.2

ORDERS ?= 100000
stock-exchange: build ## Runs the stock exchange of examples/ over a broker of its own (ORDERS=100000; ARGUMENTS="--rate 8000 --view")
	cargo build --locked --profile $(PROFILE) -p quelea-stock-exchange --target-dir $(TARGET) $(EXPERIMENTS)
	$(dir $(BINARY))stock-exchange run --quelea $(BINARY) --orders $(ORDERS) $(ARGUMENTS)

IS_QUICK = $(filter --quick,$(ARGUMENTS))
# Three runs, as in the paper; the rest of its size takes hours on two cores.
BDQS_SIZE = $(if $(IS_QUICK),--smoke,--messages 40 --repeat 3)
# The interpreters of the suites `management` and `console`.
WITH_PIKA = $(firstword $(wildcard $(CACHE)/management-*/bin/python))
WITH_PLAYWRIGHT = $(firstword $(wildcard $(CACHE)/console-*/bin/python))
# Some minutes of the console; `experiments/console_hour.py` alone is the hour.
CONSOLE_SIZE = --pairs 1 $(if $(IS_QUICK),--minutes 0.5 --turn-s 5,--minutes 3)
bench: build bench-build ## Measures each family beside RabbitMQ, ElasticMQ, ZeroMQ, MessagePack-RPC, Aeron and NATS where they can be had, replicated queues where there are Java and Maven, the management API and the console where the tests were installed, and the stock exchange (ARGUMENTS=--quick)
	$(PYTHON) experiments/peers/compare.py --quelea $(BINARY) $(ARGUMENTS)
	$(PYTHON) experiments/peers/compare_sqs.py --quelea $(BINARY) $(filter --quick --no-peer,$(ARGUMENTS))
	$(PYTHON) experiments/peers/compare_cmq.py --quelea $(BINARY) $(filter --quick --no-peer,$(ARGUMENTS))
	$(PYTHON) experiments/peers/compare_elastic.py --quelea $(BINARY) $(filter --quick --no-peer,$(ARGUMENTS))
	@if command -v java >/dev/null && command -v mvn >/dev/null; then set -x; $(BINARY) bench bdqs rates,requests,poll $(BDQS_SIZE); else echo "no java or no mvn: replicated queues were not measured"; fi
	@if [ -x "$(WITH_PIKA)" ]; then set -x; $(WITH_PIKA) experiments/management_api.py --binary $(BINARY) $(if $(IS_QUICK),--queues 1000 --asks 10); else echo "no pika, which make test installs: the management API was not measured"; fi
	@if [ -x "$(WITH_PLAYWRIGHT)" ] && command -v chromium >/dev/null; then set -x; $(WITH_PLAYWRIGHT) experiments/console_hour.py --binary $(BINARY) $(CONSOLE_SIZE); else echo "no Playwright or no Chromium, which make test installs: the console was not measured"; fi
	$(MAKE) stock-exchange $(if $(IS_QUICK),ORDERS=5000) ARGUMENTS=

papers: build bench-build ## Runs the four papers' experiments in an hour and draws them, with RabbitMQ and Qpid Broker-J where they can be had; goes on where it was stopped (ARGUMENTS="--only amqp-suite --fresh")
	cargo build --locked --profile $(PROFILE) -p quelea-stock-exchange --target-dir $(TARGET) $(EXPERIMENTS)
	$(PYTHON) experiments/papers/papers.py --quelea $(BINARY) $(or $(SCALE),--quick) $(ARGUMENTS)

cmq-profile: ## What the CMQ paper checked of its own: which lines the tests of its crates reach, and where the heap of a run comes from (ARGUMENTS="--only heap --seconds 600")
	$(PYTHON) experiments/profiles/cmq.py $(ARGUMENTS)

papers-full: ## The same at the papers' own sizes, five hours of elastic queues for each policy in real time
	$(MAKE) papers SCALE=--full

bench-compare: ## Builds a commit and this tree, and compares their CPU time a message in pairs (BASE=COMMIT, ARGUMENTS="--rows relay,cmq_64 --pairs 10")
	$(if $(BASE),,$(error bench-compare needs BASE=COMMIT))
	CARGO_TARGET_DIR=$(TARGET) $(PYTHON) experiments/peers/bench_compare.py $(BASE) $(ARGUMENTS)

# One that only some replicas answer for takes a second of CPU time a seed.
TROUBLES := nothing_is_lost without_failures one_front_end a_purge dead_letters
soak: build bench-build ## CMQ for ten minutes: nothing lost, memory flat; then kills the broker 200 times under load, damages its log at 48 places, kills elastic queues' processes 100 times, plays 3,000 random scenarios beside RabbitMQ, and replicated queues, FIFO ones too, in virtual time with as many seeds of each kind of trouble, a tenth of it with one replica for each answer (SOAK_SECONDS=600 ROUNDS=200 PLACES=48 KILLS=100 SEEDS=3000 ONE_SEEDS=300)
	$(BINARY) bench cmq-soak --duration-s $${SOAK_SECONDS:-600} --figure $(TARGET)/cmq-soak.svg
	QUELEA_KILL_ROUNDS=$${ROUNDS:-200} $(PYTHON) tests/run.py --binary $(BINARY) kill
	QUELEA_DAMAGE_PLACES=$${PLACES:-48} QUELEA_DAMAGE_MESSAGES=20001 $(PYTHON) tests/run.py --binary $(BINARY) damage
	QUELEA_ELASTIC_KILLS=$${KILLS:-100} $(PYTHON) tests/run.py --binary $(BINARY) elastic_failover
	QUELEA_DIFFERENTIAL_SEEDS=$${SEEDS:-3000} $(PYTHON) tests/run.py --binary $(BINARY) rabbitmq
	for trouble in $(TROUBLES); do QUELEA_SEEDS=$${SEEDS:-3000} cargo test --locked -p quelea-cassandra-store --lib standard::simulation::$$trouble || exit 1; done
	QUELEA_SEEDS=$${ONE_SEEDS:-300} cargo test --locked -p quelea-cassandra-store --lib standard::simulation::one_replica
	QUELEA_SEEDS=$${SEEDS:-3000} cargo test --locked -p quelea-cassandra-fifo --test simulation order_holds

fuzz: ## Replays and extends the fuzz corpora (SECONDS_EACH=60); needs cargo-fuzz and a nightly toolchain
	@command -v cargo-fuzz >/dev/null || { echo "cargo-fuzz is not installed: cargo install cargo-fuzz"; exit 1; }
	for target in $$(cargo fuzz list); do cargo +nightly fuzz run $$target -- -max_total_time=$${SECONDS_EACH:-60} || exit 1; done

sim: SIM := cargo run --release -p quelea-sim $(IN_EXPERIMENTS) --
sim: ## Plays elastic queues in virtual time: faults, both policies, and a week as plots (SEED=1 SEEDS=5 SIM_ONE_OF=200)
	$(SIM) packets --seed $${SEED:-1} --seeds $${SEEDS:-5}
	for level in relayed delivered stored; do $(SIM) packets --exhaustive --level $$level || exit 1; done
	$(SIM) fluid --seed $${SEED:-1} --seeds $${SEEDS:-5} --hours 24 --day-hours 24
	$(SIM) report --seed $${SEED:-1} --one-of $${SIM_ONE_OF:-200}

clean: ## Removes what was built, and what the tests installed and built outside the checkout
	cargo clean
	chmod -R u+w "$${QUELEA_CACHE:-$$HOME/.cache/quelea}" 2>/dev/null || true
	rm -rf "$${QUELEA_CACHE:-$$HOME/.cache/quelea}"
