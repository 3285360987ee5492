import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The folder of the package, with its examples. In a build, this file is one folder deeper. */
export function packageRoot(): string {
  const above = join(__dirname, '..', '..')
  return above.endsWith('dist') ? join(above, '..') : above
}

export function version(): string {
  const text = readFileSync(join(packageRoot(), 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
