import { chmodSync, cpSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findPrograms, isBelow, probe } from './host'
import { DISK_PROGRAMS } from './local-disks'

/** Usual programs on the PATH of a plain Linux image. A machine gets those that its host has. */
const ORDINARY = [
  'sh',
  'bash',
  'dash',
  'env',
  'true',
  'false',
  'test',
  '[',
  'echo',
  'printf',
  'expr',
  'seq',
  'yes',
  'sleep',
  'cat',
  'cp',
  'mv',
  'rm',
  'mkdir',
  'rmdir',
  'mktemp',
  'ln',
  'ls',
  'touch',
  'chmod',
  'chown',
  'stat',
  'install',
  'readlink',
  'realpath',
  'dirname',
  'basename',
  'pwd',
  'find',
  'xargs',
  'file',
  'tree',
  'sync',
  'truncate',
  'head',
  'tail',
  'tee',
  'sort',
  'uniq',
  'wc',
  'cut',
  'tr',
  'paste',
  'join',
  'comm',
  'split',
  'fold',
  'nl',
  'tac',
  'sed',
  'grep',
  'egrep',
  'fgrep',
  'awk',
  'gawk',
  'mawk',
  'diff',
  'cmp',
  'patch',
  'less',
  'more',
  'tar',
  'gzip',
  'gunzip',
  'zcat',
  'bzip2',
  'bunzip2',
  'xz',
  'unxz',
  'zstd',
  'unzip',
  'cpio',
  'dd',
  'od',
  'hexdump',
  'xxd',
  'base64',
  'md5sum',
  'sha1sum',
  'sha256sum',
  'sha512sum',
  'shasum',
  'cksum',
  'curl',
  'wget',
  'openssl',
  'getent',
  'hostname',
  'ip',
  'ss',
  'git',
  'make',
  'date',
  'id',
  'whoami',
  'groups',
  'uname',
  'arch',
  'nproc',
  'free',
  'df',
  'du',
  'uptime',
  'lscpu',
  'tty',
  'ps',
  'pgrep',
  'pkill',
  'kill',
  'killall',
  'pidof',
  'top',
  'nohup',
  'setsid',
  'setpriv',
  'nice',
  'renice',
  'ionice',
  'taskset',
  'timeout',
  'time',
  'flock',
  'chroot',
  'mount',
  'umount',
  'mountpoint',
  'logger',
  'which',
]

/** Older Pythons run neither these programs nor the runner. */
const PYTHON_MINOR_MIN = 8
const PYTHON_PROBE = `
import os, sys
for word in ("%d.%d" % sys.version_info[:2], sys.executable, os.path.realpath(sys.executable), sys.prefix, sys.base_prefix):
    print(word)
`

/** The programs in this folder that are copied for machines, because machines may not see this folder. */
const OWN = ['call.py', 'docker.py', 'engine', 'local_disks.py']

let pythons: Promise<string[][]> | undefined
const ordinary = new Map<string, [name: string, path: string][]>()

export interface Toolbox {
  /** The folder on this host to fill, which must exist. */
  folder: string
  /** Path of the folder inside the machine. */
  seenAs: string
  /** Folders of this host that the machine does not see. */
  hidden: string[]
  /** The manager's programs that this machine has, such as `systemctl`. */
  managed: readonly string[]
  hasDocker: boolean
  hasLocalDisks: boolean
}

/** Returns PATH of the machine: its own programs before those of a plain image. */
export function pathOf(seenAs: string): string {
  return `${seenAs}/bin:${seenAs}/programs`
}

/** Fills a machine's folder of programs. Throws when this host has no Python that the machine may run. */
export async function fillToolbox(box: Toolbox): Promise<void> {
  const python = await findPython(box.hidden)
  const at = (...names: string[]): string => join(box.folder, ...names)
  for (const folder of ['bin', 'programs', 'lib']) mkdirSync(at(folder))
  for (const name of OWN) cpSync(join(__dirname, 'programs', name), at('lib', name), { recursive: true })
  for (const [name, path] of findOrdinary(box.hidden)) symlinkSync(path, at('programs', name))
  for (const name of ['python3', 'python']) writeProgram(at('programs', name), `exec '${python}' "$@"`)
  const start = (script: string): string => `exec '${python}' -IS '${box.seenAs}/lib/${script}'`
  for (const name of box.managed) {
    const door = name === 'nvidia-smi' ? `${box.seenAs}/gpu` : box.seenAs
    writeProgram(at('bin', name), `${start('call.py')} '${door}' ${name} "$@"`)
  }
  if (box.hasDocker) writeProgram(at('bin', 'docker'), `${start('docker.py')} '${box.seenAs}' "$@"`)
  for (const name of box.hasLocalDisks ? DISK_PROGRAMS : [])
    writeProgram(at('bin', name), `${start('local_disks.py')} '${box.seenAs}/programs' ${name} "$@"`)
  makeReadable(box.folder)
}

function findOrdinary(hidden: string[]): [name: string, path: string][] {
  const known = ordinary.get(hidden.join())
  if (known !== undefined) return known
  const found = ORDINARY.flatMap((name): [string, string][] => {
    const [path] = findPrograms(name, hidden)
    return path === undefined ? [] : [[name, path]]
  })
  ordinary.set(hidden.join(), found)
  return found
}

function writeProgram(path: string, line: string): void {
  writeFileSync(path, `#!/bin/sh\n${line}\n`)
  chmodSync(path, 0o755)
}

/** A machine must not depend on a version manager's shim: the interpreter itself reports its path. */
export async function findPython(hidden: string[]): Promise<string> {
  pythons ??= Promise.all(['python3', 'python'].flatMap((name) => findPrograms(name)).map(askPython)).then(
    (all) => all.flatMap((answer) => (answer === undefined ? [] : [answer])),
  )
  for (const [executable, ...places] of await pythons)
    if (![executable!, ...places].some((place) => isBelow(place, hidden))) return executable!
  throw new Error(
    `A machine needs Python 3.${PYTHON_MINOR_MIN} or newer that the user of machines may run, outside of ${hidden.join(', ') || 'nothing'}: install python3.`,
  )
}

async function askPython(path: string): Promise<string[] | undefined> {
  const [version, executable, ...places] = (await probe(path, ['-c', PYTHON_PROBE]))?.trim().split('\n') ?? []
  const [major, minor] = (version ?? '').split('.').map(Number)
  if (major !== 3 || minor! < PYTHON_MINOR_MIN) return undefined
  return [executable!, ...places]
}

/** Lets the machine's user read what this process has written, whatever its umask is. */
function makeReadable(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isSymbolicLink()) chmodSync(path, statSync(path).mode | (entry.isDirectory() ? 0o555 : 0o444))
  }
}
