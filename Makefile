# make demo   build fwdlab and measure what a firewall costs (about three minutes
#             the first time); the report lies in results/demo
# make seeds  import the archive's experiments in SEEDS and report them; the
#             reports lie below results/archive
# make check  format, lints, house rules, documentation, unit tests: before each commit
# make test   everything that must hold before a change is merged. Root on Debian gets
#             the programs that tests use; elsewhere tests that lack one are skipped,
#             and listed at the end
# make test-unit, test-cli, test-netns, test-clients, test-lab, test-vm
#             one level of it: see CONTRIBUTING.md. FreeBSD's image is looked for in
#             FWDLAB_FREEBSD, else in ../shared/freebsd
# make kernels
#             fetch two kernels for guests into target/kernels, by `fwdlab kernels`: the
#             oldest and the newest of the Debian release's own series

TARGET = $${CARGO_TARGET_DIR:-target}
# Where Debian keeps ip and nft, also for users who don't look there.
export PATH := $(PATH):/usr/sbin:/sbin

# Experiments of the netbenches archive, each with its raw logs.
SEEDS ?= ../shared/archive

# Where Debian's kernels for guests lie.
KERNELS ?= target/kernels
.PHONY: demo seeds check test lint doc kernels lab-test vm-test \
	test-unit test-cli test-netns test-clients test-lab test-vm

# Measures anew each time. The store of the time before is kept as
# results/demo/run.sqlite.1, older ones are not. Exit code 4 says that the machine was
# too busy for a verdict: the report says so too, and it is there.
demo:
	@scripts/deps.sh demo
	cargo build --release --locked -p fwdlab
	rm -f results/demo/run.sqlite.[0-9]*
	$(TARGET)/release/fwdlab run experiments/demo.toml --fresh || test $$? -eq 4
	@echo "another kernel than the one that runs, by instructions a packet: see docs/VM.md"

seeds:
	@test -d $(SEEDS) || { \
		echo "$(SEEDS) is no directory: name one of the netbenches archive," \
			"e.g. make seeds SEEDS=$$HOME/netbenches" >&2; exit 2; }
	@scripts/deps.sh build
	cargo build --release --locked -p fwdlab
	$(TARGET)/release/fwdlab import $(SEEDS) --out results/archive
	$(TARGET)/release/fwdlab report results/archive

lint:
	@scripts/deps.sh build lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask check
	cargo xtask style

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

check: lint doc test-unit

# Kernels that are there are kept; without them, tests of guests are skipped.
HAVE_KERNELS = ls $(KERNELS)/*.deb >/dev/null 2>&1 || $(MAKE) --no-print-directory kernels \
	|| echo "no kernels for guests: their tests are skipped" >&2

test: lint doc
	@scripts/deps.sh test
	@$(HAVE_KERNELS)
	FWDLAB_KERNELS=$${FWDLAB_KERNELS:-$(KERNELS)} cargo xtask test

test-unit test-cli test-netns test-clients test-lab test-vm:
	@scripts/deps.sh $(@:test-%=%)
	@test $@ != test-vm || { $(HAVE_KERNELS); }
	FWDLAB_KERNELS=$${FWDLAB_KERNELS:-$(KERNELS)} cargo xtask test $(@:test-%=%)

# Former names.
lab-test: test-lab
vm-test: test-vm

# The ends of the series of this machine's Debian release. Packages of a kernel lie together;
# oldest.deb and newest.deb are links to those that stand for one.
# Built as for the tests, so that nothing is built twice.
kernels:
	cargo build --workspace --bins --tests --locked
	mkdir -p $(KERNELS)
	$(TARGET)/debug/fwdlab kernels --fetch $(KERNELS)/packages --series host --take ends
	cd $(KERNELS) && names=$$(ls -v packages/linux-image-*.deb) \
		&& ln -sf "$$(echo "$$names" | head -n 1)" oldest.deb \
		&& ln -sf "$$(echo "$$names" | tail -n 1)" newest.deb
