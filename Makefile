# make run     installs what is missing, builds, fetches the model (98 MB) and answers a prompt
# make test    the same, then every test
# make bench   speed of the model on this machine
# make format  lays out the C++ sources
# make setup   only installs the Debian packages
CACHE := $(or $(filter /%,$(XDG_CACHE_HOME)),$(HOME)/.cache)
MODEL ?= $(CACHE)/ridgeline/models/SmolLM2-135M-Instruct.Q4_1.gguf
PROMPT ?= Why is the sky blue?
JOBS ?= $(shell nproc)

.PHONY: setup run test bench format configure model
.NOTPARALLEL:

setup:
	@tools/setup.sh

configure: setup
	@mkdir -p build; cmake --preset cpu >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }

# A model of one's own is taken as it is: make run MODEL=my.gguf
model: setup
	@test -e "$(MODEL)" && test "$(origin MODEL)" != file || tools/fetch_model.py >/dev/null

run: configure model
	@cmake --build --preset cpu -j $(JOBS) --target ridgeline
	./build/cpu/ridgeline run "$(MODEL)" -p "$(PROMPT)" -n 128

test: configure model
	@cmake --build --preset cpu -j $(JOBS)
	ctest --preset cpu

bench: configure model
	@cmake --build --preset cpu -j $(JOBS) --target ridgeline
	./build/cpu/ridgeline bench "$(MODEL)"

format: setup
	@tools/check_format.sh --fix
