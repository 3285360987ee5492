/** Libraries that stand between programs and the C library, for what no user may do to a whole computer. */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'

/** The reason why nothing can be preloaded here, if there is one. */
export function whyNoPreload(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'it works on Linux on x86-64 only'
  return existsSync('/usr/bin/cc') ? undefined : 'a C compiler (cc) is needed'
}

export function compileLibrary(source: string, path: string): void {
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', path, source, '-ldl'])
}

/** Whole numbers that a preloaded library reads at each call. */
export function writeNumbers(path: string, numbers: readonly bigint[]): void {
  const bytes = Buffer.alloc(8 * numbers.length)
  numbers.forEach((number, index) => bytes.writeBigInt64LE(number, 8 * index))
  // Not a new file: the library has this one in its memory.
  writeFileSync(path, bytes, { flag: existsSync(path) ? 'r+' : 'w' })
}

export function writeScript(path: string, lines: readonly string[]): string {
  writeFileSync(path, ['#!/bin/sh', ...lines, ''].join('\n'))
  chmodSync(path, 0o755)
  return path
}

/** A Python whose processes have these variables: it names itself where it is asked for its path. */
export function writePython(path: string, variables: Readonly<Record<string, string>>): string {
  return writeScript(path, [
    ...Object.entries(variables).map(([name, value]) => `export ${name}='${value}'`),
    `[ "$1" = -c ] && { python3 "$@" | sed "2s|.*|$0|"; exit; }`,
    'exec python3 "$@"',
  ])
}
