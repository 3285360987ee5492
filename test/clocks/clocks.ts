import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The processes of a deployment that have a wall clock of their own. */
export const WHO = ['workers', 'machines', 'server', 'client'] as const
export type Who = (typeof WHO)[number]

const SOURCE = join(__dirname, 'wall-clock.c')

/** The reason why no clock can be moved here, if there is one. */
export function whyNoClocks(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return 'clocks are moved on Linux on x86-64 only'
  return existsSync('/usr/bin/cc') ? undefined : 'a C compiler (cc) is needed'
}

/** Wall clocks in a folder, one for each kind of process. Monotonic clocks and the dates of files stay true. */
export class WallClocks {
  private readonly library: string
  private readonly program: string

  constructor(private readonly folder: string) {
    mkdirSync(folder, { recursive: true })
    this.library = join(folder, 'wall-clock.so')
    this.program = join(folder, 'wall-clock')
    execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', this.library, SOURCE])
    execFileSync('cc', ['-O2', '-DPROGRAM', '-o', this.program, SOURCE])
    for (const who of WHO) this.set(who, 0)
  }

  /** Steps the clocks of running processes, and of those that start later, to this distance from the true time. */
  set(who: Who, byMs: number): void {
    const nanoseconds = Buffer.alloc(8)
    nanoseconds.writeBigInt64LE(BigInt(byMs) * 1_000_000n)
    writeFileSync(this.offset(who), nanoseconds, { flag: existsSync(this.offset(who)) ? 'r+' : 'w' })
  }

  /** Variables that give a process of Node this clock. */
  environment(who: Who): Record<string, string> {
    return { LD_PRELOAD: this.library, CLOCK_OFFSET: this.offset(who) }
  }

  /** A Python whose processes have this clock: it names itself where it is asked for its path. */
  python(who: Who): string {
    const asked = `[ "$1" = -c ] && { python3 "$@" | sed "2s|.*|$0|"; exit; }`
    const variables = Object.entries(this.environment(who)).map(
      ([name, value]) => `export ${name}='${value}'`,
    )
    return this.script(`python-${who}`, [...variables, asked, 'exec python3 "$@"'])
  }

  /** The server's program, which uses no C library, with this clock. */
  server(path: string): string {
    return this.script('server', [
      `export CLOCK_OFFSET='${this.offset('server')}'`,
      `exec '${this.program}' '${path}' "$@"`,
    ])
  }

  private offset(who: Who): string {
    return join(this.folder, `${who}.offset`)
  }

  private script(name: string, lines: readonly string[]): string {
    const path = join(this.folder, name)
    writeFileSync(path, ['#!/bin/sh', ...lines, ''].join('\n'))
    chmodSync(path, 0o755)
    return path
  }
}
