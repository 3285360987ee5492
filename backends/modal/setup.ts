import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import type { AccountPart, AccountSetup, AccountRequest, Step, Survey, Work } from '../account'
import { limitedTo } from '../calls'
import { BackendError } from '../errors'
import { defined } from '../../core/defined'
import type { Failure } from '../../core/failure'
import { createApi } from './api'
import { tokenInWords } from './config'
import { API } from './documents'
import { invalid, launchFailure, modalError, TOKEN_REFUSED } from './errors'
import { missingIn, policyIn, SECRETS, versionProblem, type Policy } from './policy'
import { readToken, removeToken, tokenPath, writeToken, type StoredToken } from './token-file'

/** Runs one command of `gateway/manage.py` and returns its answer. */
export type Manage = (command: string[], signal: AbortSignal) => Promise<unknown>

const surveyed = z.looseObject({
  workspace: z.string().nullable(),
  environment: z.string(),
  sdk: z.string(),
  url: z.string().nullable(),
  tokens: z.array(z.string()),
})
type Surveyed = z.output<typeof surveyed>

const REMARKS = [
  'The gateway costs nothing while nothing calls it; polls of running jobs keep a quarter of a core busy.',
  'Callers may name only the registries in CRUCIBLE_GATEWAY_REGISTRIES and the Modal Secrets in CRUCIBLE_GATEWAY_SECRETS.',
  'Machines reach the store over the Internet: use a bucket, not a folder.',
]
const GATEWAY = { id: 'gateway', what: 'app' } as const
const TOKEN = { id: 'token', what: 'proxy token' } as const

/**
 * Sets up a workspace of Modal: the gateway, and the proxy token that opens it.
 * @param wish `prefix` begins the names of everything in the workspace
 */
export function createModalSetup(
  wish: Pick<AccountRequest, 'prefix'>,
  environment: Record<string, string | undefined>,
  { manage = manageWith(environment, wish.prefix), openApi = createApi } = {},
): AccountSetup {
  return new ModalSetup(
    { manage, openApi, name: `${wish.prefix}-gateway`, policy: policyIn(environment) },
    tokenPath(environment, homedir()),
  )
}

interface Parts {
  manage: Manage
  openApi: typeof createApi
  /** Name of the app and of the token. */
  name: string
  policy: Policy
}

class ModalSetup implements AccountSetup {
  constructor(
    private readonly parts: Parts,
    private readonly path: string,
  ) {}

  async survey(signal: AbortSignal): Promise<Survey> {
    const found = await this.ask(signal)
    return {
      place: this.place(found),
      parts: await this.partsOf(found, signal),
      remarks: [...REMARKS],
      quotas: [],
      settings: { CRUCIBLE_BACKENDS: 'modal' },
    }
  }

  async apply({ signal, onStep }: Work): Promise<Step[]> {
    const found = await this.ask(signal)
    const [gateway, token] = await this.partsOf(found, signal)
    const steps: Step[] = []
    let url = found.url
    if (gateway!.state !== 'there') {
      const did = gateway!.state === 'missing' ? 'made' : 'mended'
      steps.push(
        await this.step(GATEWAY, { did, onStep }, async () => {
          url = z.looseObject({ url: z.string() }).parse(await this.parts.manage(['deploy'], signal)).url
        }),
      )
    }
    if (url === null) return steps
    if (token!.state !== 'there') steps.push(await this.makeToken(found, url, { signal, onStep }))
    else this.keep({ ...readToken(this.path)!, url })
    return steps
  }

  /** Makes a token. One whose secret is no longer here is unusable and is replaced. */
  private makeToken(found: Surveyed, url: string, { signal, onStep }: Work): Promise<Step> {
    return this.step(TOKEN, { did: 'made', onStep }, async () => {
      const created = z
        .looseObject({ key: z.string(), secret: z.string() })
        .parse(await this.parts.manage(['create-token'], signal))
      this.keep({ url, key: created.key, secret: created.secret })
      for (const id of found.tokens) await this.parts.manage(['delete-token', id], signal)
    })
  }

  private keep(token: StoredToken): void {
    writeToken(this.path, token)
  }

  async removal(signal: AbortSignal): ReturnType<AccountSetup['removal']> {
    const found = await this.ask(signal)
    const parts = (await this.partsOf(found, signal)).filter(({ state }) => state !== 'missing')
    return { place: this.place(found), parts, obstacles: [] }
  }

  async remove({ signal, onStep }: Work): Promise<Step[]> {
    const found = await this.ask(signal)
    const steps: Step[] = []
    if (found.url !== null)
      steps.push(
        await this.step(GATEWAY, { did: 'removed', onStep }, async () => {
          await this.parts.manage(['stop'], signal)
        }),
      )
    if (found.tokens.length > 0)
      steps.push(
        await this.step(TOKEN, { did: 'removed', onStep }, async () => {
          for (const id of found.tokens) await this.parts.manage(['delete-token', id], signal)
        }),
      )
    removeToken(this.path)
    return steps
  }

  private async ask(signal: AbortSignal): Promise<Surveyed> {
    return surveyed.parse(await this.parts.manage(['survey'], signal))
  }

  private place({ workspace, environment, sdk }: Surveyed): Survey['place'] {
    return {
      account: workspace ?? 'unknown workspace',
      region: `environment ${environment}`,
      identity: `modal ${sdk}`,
      prefix: this.parts.name,
    }
  }

  private async partsOf(found: Surveyed, signal: AbortSignal): Promise<AccountPart[]> {
    const stored = readToken(this.path)
    const isListed = stored !== undefined && found.tokens.includes(stored.key)
    const answer = isListed && found.url !== null ? await this.callGateway(stored, found.url, signal) : {}
    const { name } = this.parts
    const isKept = isListed && answer.failure?.code !== TOKEN_REFUSED
    const remarks = [answer.remark, isKept ? answer.failure?.message : undefined].filter(
      (one) => one !== undefined,
    )
    const state = remarks.length > 0 && answer.remark === undefined ? 'differs' : 'there'
    return [
      { ...GATEWAY, name, state: found.url === null ? 'missing' : state, remarks },
      {
        ...TOKEN,
        name,
        state: isKept ? ('there' as const) : ('missing' as const),
        remarks: isKept ? [tokenInWords(stored.key)] : [],
      },
    ]
  }

  /** Returns the problem of a deployed gateway: a `failure` that a new deployment corrects, or a `remark` if it would do harm. */
  private async callGateway(
    { key, secret }: StoredToken,
    url: string,
    signal: AbortSignal,
  ): Promise<{ failure?: Failure; remark?: string }> {
    const api = this.parts.openApi({ url, token: { key, secret } })
    try {
      const health = await api.health(signal)
      const failure = versionProblem(health)
      // Other workers may need the newer gateway.
      if (health.api > API) return { remark: `${failure!.message}. ${failure!.hint}` }
      const missing = missingIn(health, this.parts.policy)
      return defined({ failure: failure ?? (missing.length > 0 ? notAllowed(missing) : undefined) })
    } catch (error) {
      return { failure: modalError(error).failure }
    } finally {
      await api.close()
    }
  }

  private async step(
    kind: Pick<AccountPart, 'id' | 'what'>,
    { did, onStep }: { did: 'made' | 'mended' | 'removed'; onStep: Work['onStep'] },
    act: () => Promise<void>,
  ): Promise<Step> {
    const part = { ...kind, name: this.parts.name }
    const step = await act().then(
      (): Step => ({ part, did }),
      (error: unknown): Step => ({ part, did: 'failed', reason: modalError(error).message }),
    )
    onStep(step)
    return step
  }
}

function notAllowed(names: string[]): Failure {
  return { class: 'invalid', message: `it does not allow ${names.join(', ')} yet, which the settings name` }
}

const PYTHON = 'CRUCIBLE_MODAL_PYTHON'
const GET_MODAL = `Install it with \`pip install "modal>=1.6,<1.7"\`, or name another Python in ${PYTHON}.`
/** Building the image of the gateway takes a minute or two the first time. */
const MANAGE_MS = 10 * 60_000

function manageWith(environment: Record<string, string | undefined>, prefix: string): Manage {
  const python = environment[PYTHON]?.trim() || 'python3'
  const program = join(__dirname, 'gateway', 'manage.py')
  return async (command, signal) => {
    const child = spawn(python, ['-B', program, prefix, ...command], {
      env: { ...environment, ...defined({ [SECRETS]: policyIn(environment).secrets?.join(',') }) },
      stdio: ['ignore', 'pipe', 'pipe'],
      signal: limitedTo(MANAGE_MS, signal),
    })
    const [stdout, stderr]: [string[], string[]] = [[], []]
    child.stdout.on('data', (chunk) => stdout.push(String(chunk)))
    child.stderr.on('data', (chunk) => stderr.push(String(chunk)))
    const failed = await once(child, 'close').then(
      () => undefined,
      (error: unknown) => error as Error,
    )
    if (failed !== undefined) throw invalid(`${python} cannot run: ${failed.message}`, GET_MODAL)
    return answerOf(stdout.join(''), stderr.join(''), python)
  }
}

const failure = z.looseObject({ error: z.looseObject({ type: z.string(), message: z.string() }) })

function answerOf(stdout: string, stderr: string, python: string): unknown {
  let answer: unknown
  try {
    answer = JSON.parse(stdout)
  } catch {
    const [last = 'it printed nothing'] = stderr.trim().split('\n').slice(-1)
    throw invalid(`${python} did not set up Modal: ${last}`, GET_MODAL)
  }
  const read = failure.safeParse(answer)
  if (!read.success) return answer
  const { type, message } = read.data.error
  if (type === 'ModuleNotFoundError') throw invalid(`${python} has no \`modal\`: ${message}`, GET_MODAL)
  if (type === 'OutdatedClient') throw invalid(`${python} has ${message}`, GET_MODAL)
  if (type === 'AuthError' || /token|credential/i.test(message))
    throw new BackendError({
      class: 'auth',
      message: `Modal: ${message}`,
      code: type,
      hint: 'Run `modal setup`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET.',
    })
  throw new BackendError(launchFailure({ type, message }))
}
