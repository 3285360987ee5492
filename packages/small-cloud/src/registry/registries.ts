/** Container registries for the engines of the machines: their images, permissions and outages. */
import { createHash } from 'node:crypto'
import type { Clock } from '../clock'
import type { Identities } from '../identity/identities'
import type { RegistryAnswer, RegistryQuestion } from '../machines/machine'
import { matches, type Faults, type Occasion } from '../world/faults'
import type { World } from '../world/world'
import { TOKEN_USER, type RegistryTokens } from './tokens'

export interface RegistryParts {
  world: Pick<World, 'account' | 'docker'>
  clock: Clock
  faults: Faults
  identities: Identities
  tokens: RegistryTokens
}

const OWN = /^(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com$/
const DAEMON = 'Error response from daemon: '
const PULL_ACTIONS = ['ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer']

export class Registries {
  constructor(private readonly parts: RegistryParts) {}

  /** Answers the engine of a machine. */
  async ask(
    question: RegistryQuestion,
    { occasion, hasInternet }: { occasion: Occasion; hasInternet: boolean },
  ): Promise<RegistryAnswer> {
    const { faults, clock, world } = this.parts
    const { registry, image = '' } = question
    const about = { ...occasion, registry, ...(question.image === undefined ? {} : { image }) }
    for (const { by } of faults.strike('registry-slow', about))
      await new Promise<void>((resolve) => clock.after(by, resolve))
    const fault = hasInternet ? faults.first('registry-down', about)?.instead : 'unreachable'
    const refusal = fault === undefined ? this.refusal(question) : trouble(question, fault)
    if (refusal !== undefined) return { refusal: DAEMON + refusal }
    const digest = `sha256:${createHash('sha256').update(image).digest('hex')}`
    return { pullMs: question.verb === 'pull' ? world.docker.pull : 0, digest }
  }

  private refusal(question: RegistryQuestion): string | undefined {
    const { docker } = this.parts.world
    const own = OWN.exec(question.registry)
    if (own !== null) return this.ownRefusal(question, { account: own[1]!, region: own[2]! })
    const wanted = docker.logins[question.registry]
    const { login } = question
    if (wanted !== undefined && (login?.username !== wanted.username || login.password !== wanted.password))
      return question.verb === 'login'
        ? `Get "https://${question.registry}/v2/": unauthorized: incorrect username or password`
        : `pull access denied for ${question.image}: unauthorized: authentication required`
    return this.absence(question)
  }

  /** Returns the refusal of Amazon's own registry, which requires an unexpired token of this region, and checks its owner's permissions. */
  private ownRefusal(
    { verb, registry, image = '', login }: RegistryQuestion,
    { account, region }: { account: string; region: string },
  ): string | undefined {
    const { tokens, clock, identities, world } = this.parts
    const [, repository = '', tag = 'latest'] = /^[^/]+\/(.+?)(?:[:@]([^/]+))?$/.exec(image) ?? []
    if (login === undefined)
      return `Head "https://${registry}/v2/${repository}/manifests/${tag}": no basic auth credentials`
    const token = login.username === TOKEN_USER ? tokens.find(login.password) : undefined
    if (token === undefined || token.region !== region)
      return `login attempt to https://${registry}/v2/ failed with status: 400 Bad Request`
    const denied = (why: string): string =>
      verb === 'login'
        ? `login attempt to https://${registry}/v2/ failed with status: 403 Forbidden: ${why}`
        : `pull access denied for ${registry}/${repository}, repository does not exist or may require 'docker login': denied: ${why}`
    if (token.expiresAtMs <= clock.nowMs())
      return denied('Your authorization token has expired. Reauthenticate and try again.')
    if (verb === 'login') return undefined
    const resource = `arn:aws:ecr:${region}:${account}:repository/${repository}`
    const wrong = PULL_ACTIONS.find(
      (action) =>
        account !== world.account || identities.judge(token.principal, { action, resource }) !== 'allowed',
    )
    if (wrong !== undefined)
      return denied(
        `User: ${token.principal.arn} is not authorized to perform: ${wrong} on resource: ${resource} because no ${account === world.account ? 'identity' : 'resource'}-based policy allows the ${wrong} action`,
      )
    return this.absence({ verb, registry, image })
  }

  private absence({ verb, image = '' }: RegistryQuestion): string | undefined {
    const { images, absentImages } = this.parts.world.docker
    if (verb === 'login') return undefined
    const isThere = images === undefined || images.some((pattern) => matches(pattern, image))
    if (isThere && !absentImages.some((part) => image.includes(part))) return undefined
    return `manifest for ${image} not found: manifest unknown: manifest unknown`
  }
}

function trouble({ verb, registry }: RegistryQuestion, instead: 'unreachable' | 'error'): string {
  if (instead === 'unreachable')
    return `Get "https://${registry}/v2/": dial tcp 198.51.100.7:443: connect: connection refused`
  const status = '500 Internal Server Error'
  return verb === 'login'
    ? `login attempt to https://${registry}/v2/ failed with status: ${status}`
    : `received unexpected HTTP status: ${status}`
}
