import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The programs of an environment that set-up made of `tools/NAME.txt` (`tools/python-clients.mjs`); undefined if it could not. */
export function pythonClients(name: string): string | undefined {
  const requirements = readFileSync(join(__dirname, '../../tools', `${name}.txt`))
  const digest = createHash('sha256').update(requirements).digest('hex').slice(0, 16)
  const home = process.env['CRUCIBLE_HOME'] ?? join(homedir(), '.crucible')
  const bin = join(home, 'cache', name, digest, 'bin')
  return existsSync(bin) ? bin : undefined
}
