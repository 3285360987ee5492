/** Every workflow type, by the name under which it is started (`WORKFLOW_TYPES`). */
export { attempt } from './job/attempt'
export { buyCapacity } from './reservation/buy-capacity'
export { garbageCollection } from './garbage-collection'
export { job } from './job/job'
export { reserveCapacity } from './reservation/reserve-capacity'
export { retrain } from './retraining/retrain'
export { treasury } from './treasury/treasury'
