import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** An executable shell script. */
export function writeScript(path: string, script: string): string {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
  return path
}

/** Something that answers `--version` as a Temporal CLI does, and otherwise does what the script says. */
export function writeFakeCli(path: string, { server = '1.32.0', script = 'exit 1' } = {}): string {
  return writeScript(
    path,
    `if [ "$1" = --version ]; then echo "temporal version 9.9.9 (Server ${server}, UI 2.54.1)"; exit; fi\n${script}`,
  )
}
