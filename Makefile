# make demo   build fwdlab and measure what a firewall costs (about three minutes
#             the first time); the report lies in results/demo
# make seeds  import the archive's experiments in SEEDS and report them; the
#             reports lie below results/archive
# make test   everything that must hold before a change is merged
# make vm-test
#             guests of QEMU under test; `make test` has it, too, where there is a kernel.
#             FreeBSD's image is looked for in FWDLAB_FREEBSD, else in ../shared/freebsd
# make kernels
#             fetch two kernels for guests into target/kernels, by `fwdlab kernels`: the
#             oldest and the newest of the Debian release's own series
# make lab-test
#             experiments in laboratories of several hosts, for which namespaces of
#             this machine stand in, each with an sshd; `make test` has it, too

PROGRAMS = cargo cc ip nft ethtool perf
TARGET = $${CARGO_TARGET_DIR:-target}
# Where Debian keeps ip and nft, also for users who don't look there.
export PATH := $(PATH):/usr/sbin:/sbin

# Experiments of the netbenches archive, each with its raw logs.
SEEDS ?= ../shared/archive

# Where Debian's kernels for guests lie.
KERNELS ?= target/kernels
ifneq ($(wildcard $(KERNELS)/*.deb),)
export FWDLAB_KERNELS ?= $(KERNELS)
endif

# Tests at a time: many wait, for packets, hosts and guests.
THREADS ?= $$((2 * $$(nproc)))

# What needs no test: warnings of the compiler and of clippy, and the documents of the code.
.PHONY: demo seeds test lint lab-test vm-test kernels deps

# Measures anew each time. The store of the time before is kept as
# results/demo/run.sqlite.1, older ones are not. Exit code 4 says that the machine was
# too busy for a verdict: the report says so too, and it is there.
demo: deps
	cargo build --release --locked
	rm -f results/demo/run.sqlite.[0-9]*
	$(TARGET)/release/fwdlab run experiments/demo.toml --fresh || test $$? -eq 4
	@echo "another kernel than the one that runs, by instructions a packet: see docs/VM.md"

seeds:
	@test -d $(SEEDS) || { \
		echo "$(SEEDS) is no directory: name one of the netbenches archive," \
			"e.g. make seeds SEEDS=$$HOME/netbenches" >&2; exit 2; }
	cargo build --release --locked
	$(TARGET)/release/fwdlab import $(SEEDS) --out results/archive
	$(TARGET)/release/fwdlab report results/archive

LINTS = cargo clippy --workspace --all-targets --locked -- -D warnings \
	&& RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# What tests need has more features, so that it is built with them, once. Guests leave no CPU
# idle; laboratories mostly wait, so that lints and documents are made beside them, and a little
# later: cargo lets nobody begin while it compiles. (By no make of its own: that would be run by
# `make -n`, too.)
test: deps
	cargo fmt --all --check
	cargo build --workspace --bins --tests --locked
	export RUST_TEST_THREADS=$(THREADS); failed=0; \
	cargo test --workspace --locked --no-fail-fast || failed=1; \
	RUST_TEST_THREADS=$$(nproc) cargo test --workspace --locked --test vm || failed=1; \
	cargo test --workspace --locked --test lab & \
	sleep 10; nice -n 19 sh -c '$(LINTS)' || failed=1; \
	wait $$! || failed=1; \
	exit $$failed

lint:
	$(LINTS)

lab-test: deps
	cargo test --locked -p fwdlab-bench --test ssh
	RUST_TEST_THREADS=$(THREADS) cargo test --locked -p fwdlab --test lab

# The ends of the series of this machine's Debian release. Packages of a kernel lie together;
# oldest.deb and newest.deb are links to those that stand for one.
kernels:
	cargo build --locked -p fwdlab
	mkdir -p $(KERNELS)
	$(TARGET)/debug/fwdlab kernels --fetch $(KERNELS)/packages --series host --take ends
	cd $(KERNELS) && names=$$(ls -v packages/linux-image-*.deb) \
		&& ln -sf "$$(echo "$$names" | head -n 1)" oldest.deb \
		&& ln -sf "$$(echo "$$names" | tail -n 1)" newest.deb

vm-test:
	test -n "$$(ls $(KERNELS)/*.deb 2>/dev/null)" || $(MAKE) kernels
	cargo test --locked -p fwdlab-vm
	FWDLAB_KERNELS=$(KERNELS) cargo test --locked -p fwdlab --test vm

deps:
	@scripts/deps.sh $(PROGRAMS)
