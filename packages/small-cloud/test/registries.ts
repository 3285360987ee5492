import { WallClock, type Clock } from '../src/clock'
import { Identities, type Role } from '../src/identity/identities'
import { Ids } from '../src/ids'
import { drawKeys } from '../src/keys'
import type { AskRegistry } from '../src/machines/machine'
import { Registries } from '../src/registry/registries'
import { RegistryTokens } from '../src/registry/tokens'
import { Faults } from '../src/world/faults'
import { planWorld } from '../src/world/load'
import type { WorldText } from '../src/world/schema'
import { makeWorld } from '../src/world/world'

/** The registries of a world, outside a cloud: asked by a machine that nothing is known of. */
export function registriesOf(
  text: WorldText = {},
  clock: Clock = new WallClock(),
): { ask: AskRegistry; tokenFor: (role: string, region?: string) => string } {
  const world = makeWorld({ plan: planWorld(text), directory: '/' })
  const ids = new Ids(world.random, 'test')
  const identities = new Identities({ world, clock, ids, keys: drawKeys() })
  const faults = new Faults(world.faults, clock, world.random)
  const tokens = new RegistryTokens(world, clock, ids)
  const registries = new Registries({ world, clock, faults, identities, tokens })
  return {
    ask: (question) => registries.ask(question, { occasion: {}, hasInternet: true }),
    tokenFor: (name, region = 'us-east-1') => {
      const role = identities.roles.get(name) as Role
      const { principal } = identities.openSession(role, { name: 'i-1', durationMs: 1 })
      return tokens.give(principal, region).password
    },
  }
}
