#!/bin/sh
# Runs at every boot of a Crucible machine: creates its directory, and the timer that ends the machine in any case.
# The job itself comes later, by a command of the provider's agent.
set -u
root="${STATE_DIRECTORY:-/var/lib/crucible}"
mkdir -p "$root" && chmod 700 "$root"
cat >"$root/dead-man.py" <<'CRUCIBLE'
@DEAD_MAN@
CRUCIBLE
# A job's apt-get waits for an upgrade that has begun instead of failing, and none begins later, under the job.
if [ -d /etc/apt/apt.conf.d ]; then
  echo 'DPkg::Lock::Timeout "600";' >/etc/apt/apt.conf.d/99crucible
  systemctl stop apt-daily.timer apt-daily-upgrade.timer apt-daily.service
fi
# Runs again after a reboot.
if [ -d /var/lib/cloud/scripts/per-boot ]; then cp "$0" /var/lib/cloud/scripts/per-boot/crucible; fi
set -- --unit=crucible-dead-man --collect --property=Restart=always --property=RestartSec=10
for name in PATH STATE_DIRECTORY AWS_EC2_METADATA_SERVICE_ENDPOINT; do
  eval "value=\${$name:-}"
  if [ -n "$value" ]; then set -- "$@" "--setenv=$name=$value"; fi
done
systemd-run "$@" python3 "$root/dead-man.py" "$root"
