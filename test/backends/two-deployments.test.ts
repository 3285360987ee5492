/** Two deployments in one account whose jobs have the same ids. The local backend has a test of its own. */
import { afterEach, describe, expect, it } from '@jest/globals'
import type { Backend } from '../../backends/backend'
import { createLambdaBackend } from '../../backends/lambda'
import { createModalBackend } from '../../backends/modal'
import type { Order } from '../../core/job/plan'
import { orderTokenOf, sendNameOf } from '../../core/queues'
import type { MachineHandle } from '../../core/handle'
import { MINUTE_MS } from '../../core/time/time'
import { until } from '../support/until'
import { Ec2Harness } from './ec2/harness'
import { patiently } from './harness'
import { LambdaHarness } from './lambda/harness'
import { ModalHarness } from './modal/harness'

const OURS = 'test'
const OTHERS = 'others'

interface Account {
  order: () => Promise<Order>
  /** The backend of the deployment of `order`, and that of another one in the same account. */
  ours: Backend
  theirs: Backend
  dispose: () => Promise<void>
  /** Lets the account's own time pass, where it has one. */
  wait?: () => Promise<void>
}

const ACCOUNTS: Record<string, () => Promise<Account>> = {
  ec2: async () => {
    const h = await Ec2Harness.onPaper()
    const account = accountOf(h, await h.reopen({}, { deployment: OTHERS }))
    const ours = await h.reopen({}, { deployment: OURS })
    return { ...account, ours, wait: () => h.clock.advance(MINUTE_MS) }
  },
  lambda: async () => {
    const h = await LambdaHarness.make({ isOnPaper: true })
    const ours = await createLambdaBackend(h.config, { ...h.deps, deployment: OURS })
    const theirs = await createLambdaBackend(h.config, { ...h.deps, deployment: OTHERS })
    return { ...accountOf(h, theirs), ours }
  },
  modal: async () => {
    const h = await ModalHarness.make({ isOnPaper: true })
    return accountOf(h, await createModalBackend(h.config, { ...h.deps, deployment: OTHERS }))
  },
}

type Place = Pick<Ec2Harness, 'backend' | 'dispose'> & {
  order: (wanted: { deployment: string }) => Promise<Order>
}

function accountOf(h: Place, theirs: Backend): Account {
  return { order: () => h.order({ deployment: OURS }), ours: h.backend, theirs, dispose: () => h.dispose() }
}

let account: Account | undefined
afterEach(async () => {
  await account?.dispose()
  account = undefined
})

async function launched(backend: Backend, order: Order): Promise<MachineHandle> {
  const context = { ...patiently(), send: sendNameOf(order.attemptId, 1) }
  const outcome = await backend.launch(order, context)
  if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
  return outcome.handle
}

describe.each(Object.entries(ACCOUNTS))(
  'machines of two deployments with the same attempt id at %s',
  (_, open) => {
    it('are separate, and each deployment finds, lists and ends only its own', async () => {
      account = await open()
      const { ours, theirs } = account
      const order = await account.order()
      const { attemptId, deployment } = order
      const other = { ...order, deployment: OTHERS, token: orderTokenOf(attemptId, OTHERS) }
      const own = await launched(ours, order)
      // Theirs was never ordered: our machine must not be taken for it.
      expect(await theirs.find(attemptId, patiently())).not.toMatchObject({ kind: 'found' })
      const foreign = await launched(theirs, other)
      expect(foreign.id).not.toBe(own.id)
      expect([own.attemptId, foreign.attemptId]).toEqual([attemptId, attemptId])
      const idsOf = async (backend: Backend): Promise<string[]> => {
        const found = await backend.find(attemptId, patiently())
        return found.kind === 'found' ? found.handles.map(({ id }) => id) : []
      }
      await account.wait?.()
      await until(async () => (await idsOf(ours)).length + (await idsOf(theirs)).length === 2)
      expect([await idsOf(ours), await idsOf(theirs)]).toEqual([[own.id], [foreign.id]])
      const listed = async (backend: Backend, owner: string): Promise<string[]> =>
        (await backend.list(owner, patiently())).map(({ handle }) => handle.id)
      expect(await listed(ours, deployment)).toEqual([own.id])
      expect(await listed(theirs, OTHERS)).toEqual([foreign.id])
      await theirs.terminate(foreign, patiently())
      await account.wait?.()
      await until(async () => (await idsOf(theirs)).length === 0)
      expect(await idsOf(ours)).toEqual([own.id])
    })
  },
)

describe('a machine of 0.1.0 at Modal', () => {
  it('whose key is only its attempt id is found by its own deployment, and ended by no other', async () => {
    account = await ACCOUNTS['modal']!()
    const { ours, theirs } = account
    const order = await account.order()
    const handle = await launched(ours, { ...order, token: order.attemptId })
    expect(handle.id).toBe(order.attemptId)
    const found = await ours.find(order.attemptId, patiently())
    expect(found).toMatchObject({ kind: 'found', handles: [{ id: handle.id, attemptId: order.attemptId }] })
    expect(await theirs.find(order.attemptId, patiently())).toMatchObject({ kind: 'absent' })
    await expect(theirs.terminate(handle, patiently())).rejects.toMatchObject({
      failure: { class: 'invalid', message: expect.stringContaining('belongs to deployment test') },
    })
    expect(await ours.find(order.attemptId, patiently())).toMatchObject({ kind: 'found' })
  })
})
