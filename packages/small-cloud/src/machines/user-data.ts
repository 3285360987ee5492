import { chmodSync, closeSync, existsSync, openSync, writeFileSync } from 'node:fs'
import type { Disk } from './disk'
import type { EnclosedProcess } from './enclosure'
import type { Ground } from './systemd/launch'

const SCRIPT = '/var/lib/cloud/instance/scripts/part-001'
/** The serial console, beside the disk, so that the machine cannot delete it. */
export const CONSOLE = 'console.log'
/** The path at which a machine expects the output of its user data: the same file. */
const USER_DATA_LOG = '/var/log/cloud-init-output.log'

/** Starts the user data of a machine, once in its life. Returns `undefined`, with a message on the console, when it is not a script. */
export function startUserData(
  userData: string,
  { enclosure, environment }: Ground,
  disk: Disk,
): EnclosedProcess | undefined {
  if (whyNotRun(userData, disk) !== undefined) return undefined
  writeFileSync(disk.on(SCRIPT), userData)
  chmodSync(disk.on(SCRIPT), 0o700)
  disk.own(disk.on(SCRIPT))
  const log = openSync(disk.on(CONSOLE), 'a')
  try {
    disk.link(CONSOLE, USER_DATA_LOG)
    const argv = [enclosure.seenAs(SCRIPT)]
    return enclosure.run({ argv, cwd: '/', environment, stdout: log, stderr: log })
  } finally {
    closeSync(log)
  }
}

/** Returns the console's message about user data that is not run. */
export function whyNotRun(userData: string, disk: Disk): string | undefined {
  if (userData === '') return 'cloud-init: no user data'
  if (existsSync(disk.on(SCRIPT))) return 'cloud-init: user data has been run at the first boot'
  if (userData.startsWith('#!')) return undefined
  const first = userData.split('\n', 1)[0]!.slice(0, 60)
  return `cloud-init: user data is not run, because machines of this cloud run scripts that begin with #! only: ${first}`
}
