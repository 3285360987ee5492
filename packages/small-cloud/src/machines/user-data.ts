/** Runs user data like cloud-init: a script, or the files of a cloud-config with scripts for every boot. */
import { chmodSync, closeSync, existsSync, openSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parse } from 'yaml'
import { z } from 'zod'
import type { Disk } from './disk'
import type { EnclosedProcess } from './enclosure'
import type { Ground } from './systemd/launch'

const SCRIPT = '/var/lib/cloud/instance/scripts/part-001'
const CONFIG = '/var/lib/cloud/instance/cloud-config.txt'
const PER_BOOT = '/var/lib/cloud/scripts/per-boot'
/** The serial console, next to the disk, so that the machine cannot delete it. */
export const CONSOLE = 'console.log'
/** Path at which a machine expects the output of its user data; leads to the console. */
const USER_DATA_LOG = '/var/log/cloud-init-output.log'

/** The part of cloud-init's format that this cloud knows; a config with anything else is not run. */
const cloudConfig = z.strictObject({
  write_files: z.array(
    z.strictObject({
      path: z.string().startsWith('/var/'),
      permissions: z
        .string()
        .regex(/^0?[0-7]{3}$/)
        .default('0644'),
      encoding: z.enum(['text/plain', 'b64', 'gz+b64']).default('text/plain'),
      content: z.string(),
    }),
  ),
})
type CloudConfig = z.output<typeof cloudConfig>

/** Starts the programs of user data. Returns `undefined`, with a message on the console, when there is nothing to run. */
export function startUserData(
  userData: string,
  { enclosure, environment }: Ground,
  disk: Disk,
): EnclosedProcess | undefined {
  if (whyNotRun(userData, disk) !== undefined) return undefined
  const config = readCloudConfig(userData)
  if (config === undefined) put(disk, { path: SCRIPT, mode: 0o700, body: userData })
  // cloud-init writes files at the first boot only.
  else if (!existsSync(disk.on(CONFIG))) {
    put(disk, { path: CONFIG, mode: 0o600, body: userData })
    for (const file of config.write_files) writeConfigured(disk, file, enclosure.seenAs('/var/lib'))
  }
  // Opening it creates it: the console of a container has no lines before.
  const log = openSync(disk.on(CONSOLE), 'a')
  const perBoot = `for each in ${enclosure.seenAs(PER_BOOT)}/*; do if [ -x "$each" ]; then "$each"; fi; done`
  try {
    disk.link(CONSOLE, USER_DATA_LOG)
    const argv = config === undefined ? [enclosure.seenAs(SCRIPT)] : ['sh', '-c', perBoot]
    return enclosure.run({ argv, cwd: '/', environment, stdout: log, stderr: log })
  } finally {
    closeSync(log)
  }
}

/** Returns the console's message about user data that is not run. */
export function whyNotRun(userData: string, disk: Disk): string | undefined {
  if (userData === '') return 'cloud-init: no user data'
  if (existsSync(disk.on(SCRIPT))) return 'cloud-init: user data has been run at the first boot'
  if (userData.startsWith('#!') || readCloudConfig(userData) !== undefined) return undefined
  const first = userData.split('\n', 1)[0]!.slice(0, 60)
  return `cloud-init: user data is not run, because machines of this cloud run scripts that begin with #!, and cloud-configs with write_files below /var only: ${first}`
}

function readCloudConfig(userData: string): CloudConfig | undefined {
  if (!/^#cloud-config\s/.test(userData)) return undefined
  try {
    return cloudConfig.safeParse(parse(userData)).data
  } catch {
    return undefined
  }
}

/** Writes texts for a machine; one without its own folders has `/var/lib` elsewhere, and the texts that name it change too. */
function writeConfigured(
  disk: Disk,
  { path, permissions, encoding, content }: CloudConfig['write_files'][number],
  stateFolder: string,
): void {
  const bytes = encoding === 'text/plain' ? Buffer.from(content) : Buffer.from(content, 'base64')
  const body = encoding === 'gz+b64' ? gunzipSync(bytes) : bytes
  const text = body.toString('utf8').replaceAll('/var/lib/', `${stateFolder}/`)
  put(disk, { path, mode: parseInt(permissions, 8), body: text })
}

function put(disk: Disk, { path, mode, body }: { path: string; mode: number; body: string }): void {
  disk.make(posix.dirname(path))
  writeFileSync(disk.on(path), body)
  chmodSync(disk.on(path), mode)
  disk.own(disk.on(path))
}
