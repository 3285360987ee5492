/** The tokens issued by Amazon's own registry (ECR), and the access that they give. */
import type { Clock } from '../clock'
import type { Principal } from '../identity/identities'
import type { Ids } from '../ids'
import { drawMs, type World } from '../world/world'

/** The user name for every token. */
export const TOKEN_USER = 'AWS'

export interface RegistryToken {
  password: string
  /** Identity that reads images with the token. */
  principal: Principal
  /** The token is valid only for registries of this region. */
  region: string
  expiresAtMs: number
}

export class RegistryTokens {
  private readonly tokens = new Map<string, RegistryToken>()

  constructor(
    private readonly world: World,
    private readonly clock: Clock,
    private readonly ids: Ids,
  ) {}

  give(principal: Principal, region: string): RegistryToken {
    const expiresAtMs = this.clock.nowMs() + drawMs(this.world, 'registryToken')
    const token = { password: this.ids.sessionToken(), principal, region, expiresAtMs }
    this.tokens.set(token.password, token)
    return token
  }

  find(password: string): RegistryToken | undefined {
    return this.tokens.get(password)
  }
}
