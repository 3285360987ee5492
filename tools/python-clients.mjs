// Python packages for the tests, at the versions of a requirements file, in a separate environment in Crucible's cache.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from './run.mjs'

const LIMIT_MS = 5 * 60_000

/**
 * Returns the environment's folder, created when missing; `undefined`, with a message, when that fails. `name` is that of the requirements
 * file in this folder, without its ending; `what` names the packages for people.
 */
export async function getPythonClients({ name, what }, home, say) {
  const requirements = fileURLToPath(new URL(`./${name}.txt`, import.meta.url))
  const digest = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 16)
  const folder = join(home, 'cache', name, digest)
  if (existsSync(folder)) return folder
  // The environment's programs contain the path of their folder, so it is created in a separate folder, and a link to it appears only when
  // it is complete.
  const made = `${folder}-${process.pid}`
  try {
    say(`Getting ${what} for the tests, a minute or so the first time`)
    mkdirSync(join(home, 'cache', name), { recursive: true })
    await run(process.env.CRUCIBLE_LOCAL_PYTHON?.trim() || 'python3', ['-m', 'venv', made], {
      timeout: LIMIT_MS,
    })
    const pip = [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      '--requirement',
      requirements,
    ]
    await run(join(made, 'bin', 'python3'), pip, { timeout: LIMIT_MS })
    symlinkSync(made, `${made}.link`)
    renameSync(`${made}.link`, folder)
    return folder
  } catch (error) {
    rmSync(made, { recursive: true, force: true })
    say(`${what} cannot be installed, so their tests are skipped: ${error.message}`)
    return undefined
  }
}
