/** One year of a retraining schedule: the product's workflows, activities and schedule, with a scripted provider and a driven clock. */
import type { Client, ScheduleDescription, ScheduleHandle } from '@temporalio/client'
import { microUsd } from '../../core/money/money'
import { retrainScheduleId, WORKFLOW_TYPES } from '../../core/queues'
import type { RetrainResult, RetrainStatus } from '../../core/retraining/run'
import type { RetrainSpec } from '../../core/retraining/retraining'
import { runsBetween, type ScheduledRun } from '../../core/retraining/run-dates'
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { scheduleOf } from '../../client/retraining/schedule-handles'
import { layout } from '../../storage/layout'
import { putRevision, readRuns, type ScheduleRevision } from '../../storage/schedules'
import { JumpingClock } from '../backends/scripted/clock'
import { MemoryStore } from '../backends/scripted/memory-store'
import { ReservationMarket } from '../backends/scripted/reserving/market'
import { createScriptedBackend } from '../backends/scripted/scripted-backend'
import { ScriptedWorld } from '../backends/scripted/world'
import { until } from '../support/until'
import { wakingWorkflowBundle } from '../support/workflow-bundle'
import { DEPLOYMENT_ID, ON_DEMAND, SPOT } from '../workflows/harness'
import { Boundary } from './boundary'
import { Driver, type Driven } from './driver'
import { DrivenPlane, OwnServer, type Home } from './plant'
import { LIMITS, LOT, SCHEDULE, specOf, type Quarter, type QuarterPlan, type Scenario } from './world'

/** Before the first run begins. */
const BEGINS_AT_MS = Date.UTC(2026, 10, 1)
const YEAR_MS = 366 * DAY_MS
/** A run that waits for a person may be there when the two after it are due. */
const RUN_MAX_MS = 200 * DAY_MS

const WARES = [
  { ...ON_DEMAND, priceMicroUsdPerHour: microUsd(3) },
  { ...SPOT, priceMicroUsdPerHour: microUsd(1) },
]

/** A life of months: the watch looks often in the machine's time, and what it sees is hours apart in the driven one. */
const TIMING = { ...DEFAULT_TIMING, beatMs: MINUTE_MS, observeMs: 20, goneConfirmMs: 30 }

export interface QuarterEnd {
  run: ScheduledRun
  plan: QuarterPlan
  /** Missing if it came to no end. */
  result: RetrainResult | undefined
  /** How long the fleet was away after the opening, which delays the launch. */
  servedAtMs: number
  /** When its rehearsal got the request to end. */
  rehearsalEndedAtMs: number | undefined
  /** Dates that the schedule has left out since it was created. */
  overlapped: number
}

export class Year {
  readonly clock = new JumpingClock(BEGINS_AT_MS)
  readonly boundary = new Boundary(this.clock)
  readonly store = new MemoryStore(() => this.clock.now())
  /** It sells this kind of capacity, and has none of it until a scenario says so. */
  readonly market = new ReservationMarket({
    clock: this.clock,
    lots: [{ ...LOT, startsAtMs: BEGINS_AT_MS + 2 * YEAR_MS, stock: 0 }],
  })
  readonly world: ScriptedWorld
  readonly driver: Driver
  readonly ends: QuarterEnd[] = []
  private readonly spec: RetrainSpec
  private readonly driven: Driven
  private plane: DrivenPlane
  private plan!: QuarterPlan
  private readonly plans = new Map<string, QuarterPlan>()
  /** What was under way when a run became due, by its date. */
  private readonly begun = new Map<string, ReadonlySet<string>>()
  private servedAtMs = 0

  private constructor(
    readonly scenario: Scenario,
    private readonly home: Home,
  ) {
    const { clock, store, market, boundary } = this
    this.spec = specOf(scenario)
    this.world = new ScriptedWorld({
      clock,
      store,
      market,
      wares: WARES,
      behave: ({ jobId }) => this.planOf(jobId).behave(jobId),
    })
    this.plane = this.newPlane()
    this.driven = {
      clock,
      boundary,
      client: this.plane.client,
      isServed: false,
      looked: () => this.looked(),
    }
    this.driver = new Driver(this.driven)
  }

  static async of(scenario: Scenario, home: Home): Promise<Year> {
    const year = new Year(scenario, home)
    await year.startWorkers()
    await year.createSchedule()
    return year
  }

  /** The runs of the year, by the product's own dates. */
  get runs(): ScheduledRun[] {
    return runsBetween(this.spec, BEGINS_AT_MS, BEGINS_AT_MS + YEAR_MS).runs.slice(0, 4)
  }

  async live(run: ScheduledRun, index: number): Promise<QuarterEnd> {
    const { market, driver, clock } = this
    const quarter: Quarter = { index, run, market, year: this, reservation: () => this.reservation() }
    this.plan = this.scenario.quarter(quarter)
    this.plans.set(run.nominal.replaceAll('-', ''), this.plan)
    this.servedAtMs = 0
    for (const event of this.plan.events ?? []) driver.at(event.atMs, () => event.act())
    await this.willMeasure(run)
    await driver.until(() => clock.now() >= run.startsAtMs, run.startsAtMs)
    if (!this.begun.has(run.nominal)) await this.begin(run)
    if (this.plan.ends === 'none') return this.endOf(run)
    await this.hasBegun(run)
    const limitAtMs = run.startsAtMs + RUN_MAX_MS
    await driver.until(
      async () => this.driven.isServed && (await this.resultOf(run)) !== undefined,
      limitAtMs,
    )
    await driver.calm()
    const end = await this.endOf(run)
    this.ends.push(end)
    return end
  }

  private async endOf(run: ScheduledRun): Promise<QuarterEnd> {
    const drain = await this.store.get(layout.drain(`${SCHEDULE}-${run.nominal.replaceAll('-', '')}-reh`, 1))
    const rehearsal = drain && (JSON.parse(drain.toString()) as { requestedAtMs: number })
    const { info } = await this.schedule.describe()
    return {
      run,
      plan: this.plan,
      result: await this.resultOf(run),
      servedAtMs: this.servedAtMs,
      rehearsalEndedAtMs: rehearsal?.requestedAtMs,
      overlapped: info.numActionsSkippedOverlap,
    }
  }

  /** Of the run that a job belongs to: several may be under way. */
  private planOf(jobId: string): QuarterPlan {
    return this.plans.get(/-(\d{8})/.exec(jobId)?.[1] ?? '') ?? this.plan
  }

  private get schedule(): ScheduleHandle {
    return this.plane.client.schedule.getHandle(retrainScheduleId(SCHEDULE))
  }

  /** As the server starts it at that instant: with its schedule, whose clock is not driven. */
  async begin(run: ScheduledRun): Promise<void> {
    await this.becomeDue(run)
    await this.hasBegun(run)
  }

  /** The server decides by the schedule whether the run begins, waits, or is left out. */
  async becomeDue({ startsAtMs, nominal }: ScheduledRun): Promise<void> {
    this.begun.set(nominal, new Set(this.boundary.runs.keys()))
    const described = await this.schedule.describe()
    const before = handled(described)
    await this.schedule.backfill({
      start: new Date(startsAtMs - SECOND_MS),
      end: new Date(startsAtMs),
      overlap: this.scenario.spec?.overlap === undefined ? 'ALLOW_ALL' : described.policies.overlap,
    })
    await until(async () => handled(await this.schedule.describe()) > before)
  }

  private async hasBegun({ nominal }: ScheduledRun): Promise<void> {
    const known = this.begun.get(nominal)!
    const isNew = ({ type, runId }: { type: string; runId: string }): boolean =>
      type === WORKFLOW_TYPES.retrain && !known.has(runId)
    await until(() => [...this.boundary.runs.values()].some(isNew))
  }

  /** A person approves the model of a run. */
  async approve({ nominal }: ScheduledRun): Promise<void> {
    for (const { type, workflowId } of this.boundary.open) {
      const handle = this.client.workflow.getHandle(workflowId)
      if (type !== WORKFLOW_TYPES.retrain) continue
      if ((await handle.query<RetrainStatus>('status')).run?.id !== nominal) continue
      await handle.executeUpdate('approveModel', { args: [{ by: 'ada' }] })
    }
  }

  async resultOf({ nominal }: ScheduledRun): Promise<RetrainResult | undefined> {
    const runs = await readRuns(this.store, { schedule: SCHEDULE, count: 10 })
    return runs.find(({ id }) => id === nominal)?.result ?? undefined
  }

  get client(): Client {
    return this.plane.client
  }

  /** Until nothing is at work, treasuries apart. */
  async rest(): Promise<void> {
    const { boundary, clock, driver } = this
    const isOver = (): boolean => boundary.open.every(({ type }) => type === WORKFLOW_TYPES.treasury)
    await driver.until(isOver, clock.now() + REST_MAX_MS)
  }

  /** The newest purchase, as the provider has it. */
  private reservation(): string {
    const last = this.market.purchases.findLast(({ kind }) => kind === 'reservation')
    if (last === undefined) throw new Error('nothing is bought yet')
    return last.id
  }

  /** All workers stop, as if their hosts were gone; what they did is handed out again later. */
  async stopWorkers(): Promise<void> {
    this.driven.isServed = false
    await this.plane.close()
    this.boundary.stopped()
  }

  async startWorkers(): Promise<void> {
    await this.plane.start('orchestrator', 'verbs', 'watches', 'launches')
    this.driven.isServed = true
    this.servedAtMs = this.clock.now()
  }

  /** Keeps the state of the server as a backup, and continues. */
  async backUp(): Promise<void> {
    const kept = this.boundary.kept()
    await this.restart(async (server) => server.keep())
    this.keptRuns = kept
  }

  /** The server as it was at the backup. Store, provider and clock go on. */
  async restore(): Promise<void> {
    await this.restart(async (server) => server.putBack())
    this.boundary.putBack(this.keptRuns)
  }

  private keptRuns: ReturnType<Boundary['kept']> = []

  private async restart(work: (server: OwnServer) => Promise<void>): Promise<void> {
    const { home } = this
    if (!(home instanceof OwnServer)) throw new Error('only a server of its own has a file')
    await this.stopWorkers()
    await home.down()
    await work(home)
    await home.up()
    this.plane = this.newPlane()
    this.driven.client = this.plane.client
    await this.startWorkers()
  }

  private newPlane(): DrivenPlane {
    const { store, world, boundary, clock, home } = this
    const backend = createScriptedBackend(world)
    const ground = {
      store,
      backends: [world.name],
      timing: TIMING,
      monthly: LIMITS,
      bundle: wakingWorkflowBundle,
      backend: () => backend,
      now: () => clock.now(),
    }
    return new DrivenPlane(home.at, { namespace: home.namespace, ground, boundary })
  }

  /** Paused: the server's own clock must not start anything. */
  private async createSchedule(): Promise<void> {
    const { spec } = this
    const revision: ScheduleRevision = {
      revision: 1,
      atMs: this.clock.now(),
      by: 'somebody',
      kind: 'created',
      input: {
        schedule: SCHEDULE,
        revision: 1,
        spec,
        bundle: null,
        secrets: [],
        owner: 'somebody',
        deployment: DEPLOYMENT_ID,
      },
    }
    await putRevision(this.store, revision)
    const schedule = scheduleOf(revision, this.clock.now())
    await this.plane.client.schedule.create({
      scheduleId: retrainScheduleId(SCHEDULE),
      ...schedule,
      state: { paused: true },
    })
  }

  private async looked(): Promise<void> {
    const { world } = this
    const before = world.callsOf('observe').length
    const isOver = (): boolean => !this.boundary.isWatching || world.callsOf('observe').length >= before + 2
    // One that has just been handed over is looked at a little later.
    await until(isOver, LOOKED_LIMIT_MS).catch(() => undefined)
  }

  /** What the evaluation will have written: its machine is a script that writes nothing itself. */
  private async willMeasure({ nominal }: ScheduledRun): Promise<void> {
    const jobId = `${SCHEDULE}-${nominal.replaceAll('-', '')}-eval`
    const { loss } = this.plan
    await this.store.put(`${layout.artifactsOf(jobId, 1)}metrics.json`, JSON.stringify({ loss }))
  }

  async close(): Promise<void> {
    this.world.dispose()
    await this.plane.close()
    await this.home.close()
  }
}

/** Dates that the server has decided about. */
function handled({ info, raw }: ScheduleDescription): number {
  return info.numActionsTaken + info.numActionsSkippedOverlap + Number(raw.info?.bufferSize ?? 0)
}

const REST_MAX_MS = 10 * DAY_MS
const LOOKED_LIMIT_MS = 1_000
