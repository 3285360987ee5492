import { WallClock, type Clock } from '../../sim/clock'
import { Identities, type Role } from '../../sim/identity/identities'
import { Ids } from '../../sim/ids'
import type { AskRegistry } from '../../sim/machines/machine'
import { Registries } from '../../sim/registry/registries'
import { RegistryTokens } from '../../sim/registry/tokens'
import { Faults } from '../../sim/world/faults'
import { planWorld } from '../../sim/world/load'
import type { WorldText } from '../../sim/world/schema'
import { makeWorld } from '../../sim/world/world'

/** The registries of a world, outside a cloud: asked by a machine that nothing is known of. */
export function registriesOf(
  text: WorldText = {},
  clock: Clock = new WallClock(),
): { ask: AskRegistry; tokenFor: (role: string, region?: string) => string } {
  const world = makeWorld({ plan: planWorld(text), directory: '/' })
  const ids = new Ids(world.random, 'test')
  const identities = new Identities(world, clock, ids)
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
