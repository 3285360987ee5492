/** Prepares and checks the environment in which a process starts. */
import { accessSync, constants } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { CrucibleError } from '../../client/errors'
import { exemptFrom } from '../../network/config'

/** Exempts this machine from its proxy, for this process and its children: a server on loopback is not behind one. */
export function exemptLoopback(environment: NodeJS.ProcessEnv): void {
  const exempt = exemptFrom(environment)
  if (exempt === undefined) return
  for (const name of ['no_proxy', 'NO_PROXY']) environment[name] = exempt
}

/** Names a user id that the system does not know, as in a container with one of its own: libraries ask for name and home of the user. */
export function nameUser(environment: NodeJS.ProcessEnv, ask: () => unknown = userInfo): void {
  try {
    ask()
  } catch {
    environment['USER'] ??= String(process.getuid?.())
    environment['HOME'] ??= '/'
  }
}

/** A reason why this process cannot start servers, workers or machines, with its remedy, in sentences. */
export interface Obstacle {
  message: string
  hint: string
}

/** Lists the obstacles for every command that starts something, and for `crucible doctor`. */
export function obstacles(): Obstacle[] {
  const temporary = tmpdir()
  const problems = [
    obstacle(() => accessSync(temporary, constants.W_OK | constants.X_OK), {
      name: `folder for temporary files, ${temporary},`,
      hint: 'Set TMPDIR to a folder in which you may write, such as /tmp.',
    }),
    obstacle(() => process.cwd(), {
      name: 'current folder',
      hint: 'Change to another folder, then try again.',
    }),
  ]
  return problems.filter((problem) => problem !== undefined)
}

function obstacle(use: () => unknown, { name, hint }: { name: string; hint: string }): Obstacle | undefined {
  try {
    use()
    return undefined
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    const problem = code === 'ENOENT' ? 'does not exist' : `cannot be used (${code})`
    return { message: `The ${name} ${problem}.`, hint }
  }
}

/** Throws `usage` for the first obstacle. */
export function checkSurroundings(): void {
  const [first] = obstacles()
  if (first !== undefined) throw new CrucibleError('usage', first.message, { hint: first.hint })
}
