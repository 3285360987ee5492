import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { compileLibrary, writeNumbers, writePython, writeScript } from '../chaos/preload'

/** The processes of a deployment that have a wall clock of their own. */
const WHO = ['workers', 'machines', 'server', 'client'] as const
export type Who = (typeof WHO)[number]

const SOURCE = join(__dirname, 'wall-clock.c')

/** Wall clocks in a folder, one for each kind of process. Monotonic clocks and the dates of files stay true. */
export class WallClocks {
  private readonly library: string
  private readonly program: string

  constructor(private readonly folder: string) {
    mkdirSync(folder, { recursive: true })
    this.library = join(folder, 'wall-clock.so')
    this.program = join(folder, 'wall-clock')
    compileLibrary(SOURCE, this.library)
    execFileSync('cc', ['-O2', '-DPROGRAM', '-o', this.program, SOURCE])
    for (const who of WHO) this.set(who, 0)
  }

  /** Steps the clocks of running processes, and of those that start later, to this distance from the true time. */
  set(who: Who, byMs: number): void {
    writeNumbers(this.offset(who), [BigInt(byMs) * 1_000_000n])
  }

  /** Variables that give a process of Node this clock. */
  environment(who: Who): Record<string, string> {
    return { LD_PRELOAD: this.library, CLOCK_OFFSET: this.offset(who) }
  }

  /** A Python whose processes have this clock. */
  python(who: Who): string {
    return writePython(join(this.folder, `python-${who}`), this.environment(who))
  }

  /** The server's program, which uses no C library, with this clock. */
  server(path: string): string {
    return writeScript(join(this.folder, 'server'), [
      `export CLOCK_OFFSET='${this.offset('server')}'`,
      `exec '${this.program}' '${path}' "$@"`,
    ])
  }

  private offset(who: Who): string {
    return join(this.folder, `${who}.offset`)
  }
}
