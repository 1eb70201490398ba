# Installs Debian packages without starting any service: apt asks policy-rc.d, which says no.
# Usage: apt-install POLICY_FILE PACKAGE…
set -eu
policy=$1
shift

# `set -C` refuses to overwrite: a policy that is already there belongs to the machine, and stays.
if (set -C && printf '#!/bin/sh\nexit 101\n' >"$policy") 2>/dev/null; then
    # A shell, because its traps also clean up when a person presses Ctrl-C during the install.
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    chmod 755 "$policy"
elif [ ! -e "$policy" ]; then
    echo "cannot write $policy, so services might be started: nothing was installed" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
install() {
    apt-get update && apt-get install -y --no-install-recommends "$@"
}

install "$@" && exit
# An installation that was interrupted, or a package that failed to configure, keeps apt from doing anything
# until it is repaired. A mirror that did not answer may do so now.
echo "the installation failed; repairing (dpkg --configure -a, apt-get -f install) and trying once more" >&2
dpkg --configure -a || true
apt-get -f install -y || true
install "$@"
