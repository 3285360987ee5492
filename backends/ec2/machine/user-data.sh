#!/bin/sh
# Every boot of a machine of Crucible: its directory, and the timer that ends it whatever becomes of everybody else.
# What is to be done here comes later, by a command of the provider's agent.
set -u
root="${STATE_DIRECTORY:-/var/lib/crucible}"
mkdir -p "$root" && chmod 700 "$root"
cat >"$root/dead-man.py" <<'CRUCIBLE'
@DEAD_MAN@
CRUCIBLE
# Should the machine boot again, this runs again.
if [ -d /var/lib/cloud/scripts/per-boot ]; then cp "$0" /var/lib/cloud/scripts/per-boot/crucible; fi
set -- --unit=crucible-dead-man --collect --property=Restart=always --property=RestartSec=10
for name in PATH STATE_DIRECTORY AWS_EC2_METADATA_SERVICE_ENDPOINT; do
  eval "value=\${$name:-}"
  if [ -n "$value" ]; then set -- "$@" "--setenv=$name=$value"; fi
done
systemd-run "$@" python3 "$root/dead-man.py" "$root"
