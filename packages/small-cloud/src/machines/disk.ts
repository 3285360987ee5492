import {
  appendFileSync,
  chmodSync,
  existsSync,
  lchownSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'
import { MACHINE_FOLDERS } from './enclosure'
import { isBelow, type MachineUser } from './host'

/** The folders of a new disk. */
const FOLDERS = [
  '/var/lib/cloud/instance/scripts',
  '/var/lib/amazon/ssm',
  '/var/lib/crucible',
  '/var/log',
  '/var/cache',
  '/var/spool',
  '/run/lock',
  '/run/machine',
  '/root',
  '/tmp',
  '/var/tmp',
]

/** The disk of one machine: a directory of this host that belongs to the machine's user. */
export class Disk {
  constructor(
    readonly directory: string,
    private readonly user: MachineUser,
  ) {}

  /** Creates missing folders. */
  prepare(): void {
    mkdirSync(this.directory, { recursive: true })
    this.own(this.directory)
    // The disk holds keys.
    chmodSync(this.directory, 0o700)
    for (const folder of FOLDERS) this.make(folder)
    for (const folder of ['/tmp', '/var/tmp']) chmodSync(this.on(folder), 0o1777)
    chmodSync(this.on('/root'), 0o700)
  }

  /** Returns the path on this host for a path of the machine. */
  on(path: string): string {
    return join(this.directory, path)
  }

  /** Returns the path like `on`, for a path from a program of the machine; undefined if the path is not on this disk. */
  find(path: string): string | undefined {
    if (isBelow(path, [this.directory])) return path
    return isBelow(path, MACHINE_FOLDERS) ? this.on(path) : undefined
  }

  make(path: string): void {
    let made = this.directory
    for (const name of path.split('/').filter(Boolean)) {
      made = join(made, name)
      if (existsSync(made)) continue
      mkdirSync(made)
      this.own(made)
    }
  }

  own(file: string): void {
    if (this.user.uid !== process.getuid!()) lchownSync(file, this.user.uid, this.user.gid)
  }

  /** Appends a line to a file next to the disk that the machine itself does not see. */
  note(name: string, line: string): void {
    appendFileSync(join(this.directory, name), `${line}\n`)
  }

  /** Links a file next to the disk into the disk. */
  link(name: string, path: string): void {
    rmSync(this.on(path), { force: true })
    linkSync(join(this.directory, name), this.on(path))
  }

  read(path: string): string {
    return existsSync(this.on(path)) ? readFileSync(this.on(path), 'utf8') : ''
  }
}
