# make demo   build fwdlab and measure the cost of a firewall (about three minutes
#             the first time); the report is in results/demo
# make seeds  import the archive's experiments in SEEDS and report them; the
#             reports are in results/archive
# make check  format, lints, house rules, documentation, unit tests: before each commit
# make test   everything required before a change is merged. As root on Debian, installs
#             the programs that tests use; otherwise tests without their programs are
#             skipped and listed at the end
# make test-unit, test-cli, test-netns, test-clients, test-lab, test-vm
#             one level of it: see CONTRIBUTING.md. The FreeBSD image is taken from
#             FWDLAB_FREEBSD or ../shared/freebsd
# make kernels
#             download two kernels for guests into target/kernels, by `fwdlab kernels`: the
#             oldest and the newest of the Debian release's series

TARGET = $${CARGO_TARGET_DIR:-target}
# Debian's location of ip and nft, which is not in every user's search path.
export PATH := $(PATH):/usr/sbin:/sbin

# Experiments of the netbenches archive, with their raw logs.
SEEDS ?= ../shared/archive

# Folder of Debian's kernels for guests.
KERNELS ?= target/kernels
.PHONY: demo seeds check test lint doc kernels lab-test vm-test \
	test-unit test-cli test-netns test-clients test-lab test-vm

# Measures again each time. The previous store is kept as results/demo/run.sqlite.1; older ones are
# deleted. Exit code 4: the machine was too busy for a verdict, as the report explains.
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
	cargo clippy --workspace --all-targets --test '*' --locked -- -D warnings
	cargo xtask check
	cargo xtask style

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

check: lint doc test-unit

# Keeps existing kernels. Without kernels, tests of guests are skipped.
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

# Old names.
lab-test: test-lab
vm-test: test-vm

# The oldest and the newest kernel of this machine's Debian release. packages/ contains all packages
# of both kernels; oldest.deb and newest.deb link to the image packages. Uses the build of the
# tests, so that nothing is built twice.
kernels:
	cargo build --workspace --bins --tests --locked
	mkdir -p $(KERNELS)
	$(TARGET)/debug/fwdlab kernels --fetch $(KERNELS)/packages --series host --take ends
	cd $(KERNELS) && names=$$(ls -v packages/linux-image-*.deb) \
		&& ln -sf "$$(echo "$$names" | head -n 1)" oldest.deb \
		&& ln -sf "$$(echo "$$names" | tail -n 1)" newest.deb
