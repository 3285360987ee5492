import type { WorldText } from '#small-cloud'
import type { CloudProvider, ProviderName } from '../provider'
import { EC2 } from './ec2'
import { LAMBDA } from './lambda'
import { MODAL } from './modal'

/** All that a job of these harnesses may run at. */
export const PROVIDERS: Readonly<Record<ProviderName, CloudProvider>> = {
  ec2: EC2,
  lambda: LAMBDA,
  modal: MODAL,
}
export const PROVIDER_NAMES = Object.keys(PROVIDERS) as ProviderName[]

/** The providers that an option names: one, or `all`. Throws for any other word. */
export function providersNamed(word: string): CloudProvider[] {
  const named = PROVIDER_NAMES.filter((name) => word === name || word === 'all')
  if (named.length === 0)
    throw new Error(`--provider takes ${PROVIDER_NAMES.join(', ')} or all, not ${word}.`)
  return named.map((name) => PROVIDERS[name])
}

/** The option of a harness that plays a cloud; `turns` says how several providers share its runs. */
export function providerOption(turns: string) {
  return { default: 'all', as: 'NAME', means: `${PROVIDER_NAMES.join(', ')}, or all: ${turns}` }
}

/** What several texts say about one world; the later ones win. */
export function mergeWorlds(...texts: WorldText[]): WorldText {
  return texts.reduce((all, text) => ({
    ...all,
    ...text,
    durations: { ...all.durations, ...text.durations },
    lambda: { ...all.lambda, ...text.lambda },
  }))
}
