import { generateKeyPairSync } from 'node:crypto'
import type { AccountPart, AccountSetup, AccountRequest, Step, Survey, Work } from '../account'
import { createLimiter } from '../limiter'
import { BackendError } from '../errors'
import { createApi, type LambdaApi, type SshKey } from './api'
import { keyInWords, parseLambdaConfig, type LambdaConfig } from './config'
import { lambdaError } from './errors'

/** Comment that identifies a key made by set-up. */
const COMMENT = 'made-by-crucible-setup'

const REMARKS = [
  'Each launch must name an SSH key. Set-up makes one and discards its private half: nothing ever logs in with it.',
  'Machines reach the store over the Internet: use a bucket, not a folder.',
  'Lambda bills a machine until it is terminated through its API, also while it is powered off. Run `crucible gc --alone` regularly on another host.',
]

/**
 * Sets up a Lambda account: the one SSH key that launches name. Throws a `BackendError` for unusable settings.
 * @param wish `prefix` is the name of the key
 */
export function createLambdaSetup(
  wish: Pick<AccountRequest, 'prefix'>,
  environment: Record<string, string | undefined>,
  openApi: typeof createApi = createApi,
): AccountSetup {
  const read = parseLambdaConfig(environment)
  if ('problems' in read) throw new BackendError({ class: 'auth', message: read.problems.join('\n') })
  const { config } = read
  const limiter = createLimiter({ size: 1, perSecond: config.requestsPerSecond }, Date.now)
  const { endpoint, apiKey } = config
  return new LambdaSetup(openApi({ endpoint, apiKey, limiter }), config, wish.prefix)
}

class LambdaSetup implements AccountSetup {
  constructor(
    private readonly api: LambdaApi,
    private readonly config: LambdaConfig,
    private readonly name: string,
  ) {}

  async survey(signal: AbortSignal): Promise<Survey> {
    const key = await this.key(signal)
    return {
      place: this.place(),
      parts: [partOf(this.name, key)],
      remarks: [...REMARKS],
      quotas: [],
      settings: { CRUCIBLE_BACKENDS: 'lambda', CRUCIBLE_LAMBDA_SSH_KEY: this.name },
    }
  }

  async apply({ signal, onStep }: Work): Promise<Step[]> {
    if ((await this.key(signal)) !== undefined) return []
    return this.step(onStep, 'made', () =>
      this.api.addSshKey({ name: this.name, public_key: newPublicKey() }, signal),
    )
  }

  async removal(signal: AbortSignal): ReturnType<AccountSetup['removal']> {
    const key = await this.key(signal)
    const isOwn = key !== undefined && isOurs(key)
    const users = isOwn
      ? (await known(this.api.instances(signal))).filter((one) => namesKey(one, this.name))
      : []
    return {
      place: this.place(),
      parts: isOwn ? [partOf(this.name, key)] : [],
      obstacles:
        users.length === 0
          ? []
          : [
              {
                message: `${users.length} machines were launched with the SSH key ${this.name}`,
                remedy: 'End them first: `crucible gc` lists those of this deployment.',
              },
            ],
    }
  }

  async remove({ signal, onStep }: Work): Promise<Step[]> {
    const key = await this.key(signal)
    if (key === undefined || !isOurs(key)) return []
    return this.step(onStep, 'removed', () => this.api.deleteSshKey(key.id, signal))
  }

  private async key(signal: AbortSignal): Promise<SshKey | undefined> {
    const keys = await known(this.api.sshKeys(signal))
    return keys.find(({ name }) => name === this.name)
  }

  private place(): Survey['place'] {
    return {
      account: new URL(this.config.endpoint).host,
      identity: keyInWords(this.config.apiKey),
      prefix: this.name,
    }
  }

  private async step(
    onStep: Work['onStep'],
    did: 'made' | 'removed',
    act: () => Promise<unknown>,
  ): Promise<Step[]> {
    const part = { id: 'ssh-key', what: 'SSH key', name: this.name }
    const step = await act().then(
      (): Step => ({ part, did }),
      (error: unknown): Step => ({ part, did: 'failed', reason: lambdaError(error).message }),
    )
    onStep(step)
    return [step]
  }
}

async function known<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    throw lambdaError(error)
  }
}

function partOf(name: string, key: SshKey | undefined): AccountPart {
  const part = { id: 'ssh-key', what: 'SSH key', name }
  if (key === undefined) return { ...part, state: 'missing', remarks: [] }
  const { id: providerId } = key
  return isOurs(key)
    ? { ...part, providerId, state: 'there', remarks: [] }
    : { ...part, providerId, state: 'theirs', remarks: ['set-up did not make it'] }
}

function isOurs({ public_key: key }: SshKey): boolean {
  return key.trim().split(/\s+/)[2] === COMMENT
}

function namesKey(instance: object, name: string): boolean {
  const names = (instance as { ssh_key_names?: unknown }).ssh_key_names
  return Array.isArray(names) && names.includes(name)
}

/** An Ed25519 key in OpenSSH's form; its private half is never kept. */
function newPublicKey(): string {
  const { publicKey } = generateKeyPairSync('ed25519')
  const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x!, 'base64url')
  const field = (bytes: Buffer): Buffer => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    return Buffer.concat([length, bytes])
  }
  const blob = Buffer.concat([field(Buffer.from('ssh-ed25519')), field(raw)])
  return `ssh-ed25519 ${blob.toString('base64')} ${COMMENT}`
}
