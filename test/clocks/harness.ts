import { HOUR_MS, DAY_MS } from '../../core/time/time'
import { whyNoPreload } from '../chaos/preload'
import type { Product } from '../chaos/stage'
import { harness, type Case, type Drawn } from '../kit/harness'
import { withServerOnly } from '../kit/server'
import { withProduct } from '../proof/product'
import { testServer } from '../support/temporal'
import { runClocks, type Step } from './run'

const OPTIONS = {
  keep: { default: false, means: 'keeps the folder of every run, not only of the broken ones' },
}

/** On a host, workers and machines share a clock. */
const SIDES: Readonly<Record<string, Step['who']>> = {
  workers: ['workers'],
  machines: ['machines'],
  'workers and machines': ['workers', 'machines'],
  server: ['server'],
  client: ['client'],
  everything: ['workers', 'machines', 'server', 'client'],
}
const STEPS = { '2 h ahead': 2 * HOUR_MS, '2 h back': -2 * HOUR_MS, '30 d ahead': 30 * DAY_MS } as const

export type ClockCase = Case & { step: Step }

export const CLOCK_CASES: readonly ClockCase[] = Object.entries(SIDES).flatMap(([side, who]) =>
  Object.entries(STEPS).map(([words, byMs]) => {
    const name = `${side} ${words}`
    return { name, again: ['--only', name], step: { who, byMs } }
  }),
)

/** A deployment of real processes with a job in every state, whose wall clocks are set. */
export const CLOCKS = harness({
  jobs: 2,
  options: OPTIONS,
  around: (_, use) => withProduct((product) => withServerOnly(() => use(product))),
  draw: () => CLOCK_CASES,
  live: async ({ step }: ClockCase, product: Product, { keep }: Drawn<typeof OPTIONS>) => {
    const obstacle = whyNoPreload()
    if (obstacle !== undefined) return { state: `skipped: ${obstacle}`, breaches: [], story: [] }
    return runClocks(step, { product, executable: testServer().executable, isKept: keep })
  },
})
