// Third-party AWS clients and servers that verify the small cloud and the EC2 backend: boto3 with botocore's models, the aws CLI and moto,
// at the versions of aws-clients.txt, in a separate Python environment in Crucible's cache. Without them their tests are skipped, with a
// message.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from './run.mjs'

const REQUIREMENTS = fileURLToPath(new URL('./aws-clients.txt', import.meta.url))
const LIMIT_MS = 5 * 60_000

/** Returns the environment's folder, created when missing; `undefined`, with a message, when that fails. */
export async function getAwsClients(home, say) {
  const digest = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 16)
  const folder = join(home, 'cache', 'aws-clients', digest)
  if (existsSync(folder)) return folder
  // Its programs contain the path of their folder. The environment is therefore created in a folder of its own, and a link to it appears
  // only when it is complete.
  const made = `${folder}-${process.pid}`
  try {
    say('Getting boto3, the aws CLI and moto for the tests, a minute or so the first time')
    mkdirSync(join(home, 'cache', 'aws-clients'), { recursive: true })
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
      REQUIREMENTS,
    ]
    await run(join(made, 'bin', 'python3'), pip, { timeout: LIMIT_MS })
    symlinkSync(made, `${made}.link`)
    renameSync(`${made}.link`, folder)
    return folder
  } catch (error) {
    rmSync(made, { recursive: true, force: true })
    say(`boto3, the aws CLI and moto cannot be installed, so their tests are skipped: ${error.message}`)
    return undefined
  }
}
