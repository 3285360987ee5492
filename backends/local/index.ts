import type { Backend, Capabilities } from '../backend'
import { verb } from './calls'
import { check } from './check'
import type { LocalConfig } from './config'
import { whyNoContainers } from './containers'
import { createHost, type LocalDeps } from './host'
import { launch } from './launch'
import { logs } from './logs'
import { find, list, observe } from './observe'
import { capacityTypesOf, offers } from './offers'
import { interrupt, terminate } from './terminate'
import { SECOND_MS } from '../../core/time/time'

const BOOT = {
  lowMs: SECOND_MS / 5,
  middleMs: SECOND_MS,
  highMs: 5 * SECOND_MS,
  source: 'a process on this machine, by npm run bench, November 2026',
}

/**
 * Creates the backend of machines on this host. Each machine is a group of processes with its own directory, which has all facts about it,
 * so any number of processes may use the same root, concurrently or in turn. Only the slot count assumes that one process launches at a
 * time.
 */
export async function createLocalBackend(config: LocalConfig, deps: LocalDeps): Promise<Backend> {
  const host = createHost(config, deps)
  // If the folders cannot be created, `check` explains why and every launch tries again.
  await host.makeFolders().catch(() => undefined)
  return {
    name: 'local',
    capabilities: capabilitiesOf({
      capacityTypes: capacityTypesOf(host),
      hasContainers: (await whyNoContainers(host.config.environment)) === undefined,
    }),
    check: (ctx) => verb(ctx, () => check(host, ctx)),
    offers: (request, ctx) => verb(ctx, () => offers(host, request, ctx)),
    launch: (order, ctx) => verb(ctx, () => launch(host, order, ctx)),
    // Not while a launch of the attempt is in progress, which may make a machine yet.
    find: (attemptId, ctx) =>
      verb(ctx, () => host.exclusive(attemptId, ctx.signal, () => find(host, attemptId))),
    observe: (handles, ctx) => verb(ctx, () => observe(host, handles)),
    terminate: (resource, ctx) => verb(ctx, () => terminate(host, resource, ctx)),
    list: (deployment, ctx) => verb(ctx, () => list(host, deployment)),
    logs: (handle, cursor, ctx) => verb(ctx, () => logs(host, handle, cursor)),
    interrupt: (handle, { noticeMs }, ctx) => verb(ctx, () => interrupt(host, { handle, noticeMs }, ctx)),
  }
}

export function capabilitiesOf({
  capacityTypes,
  hasContainers,
}: Pick<Capabilities, 'capacityTypes'> & { hasContainers: boolean }): Capabilities {
  return {
    capacityTypes,
    imageRunner: hasContainers ? 'runner' : 'none',
    runnerStart: 'with-launch',
    idempotency: 'token',
    billsUntil: 'exit',
    boot: BOOT,
    price: 'configured',
    ignores: ['disk_throughput', 'disk_iops'],
  }
}
