;; Reads memory as fast as the engine can: four streams in lock step, which keeps more cache misses in flight
;; than one (two or eight are slower), two registers of each a turn.
(module
  (memory (export "memory") 1)
  ;; Adds up four runs of $bytes bytes (a multiple of 32) that lie one after another from address 0. The sum
  ;; matters to nobody: it keeps the loads from being removed.
  (func (export "read") (param $bytes i32) (result i32)
    (local $at i32) (local $second i32) (local $third i32) (local $fourth i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local.set $second (local.get $bytes))
    (local.set $third (i32.shl (local.get $bytes) (i32.const 1)))
    (local.set $fourth (i32.add (local.get $third) (local.get $bytes)))
    (loop $next
      (local.set $a (i32x4.add (local.get $a)
        (v128.xor (v128.load (local.get $at)) (v128.load offset=16 (local.get $at)))))
      (local.set $b (i32x4.add (local.get $b)
        (v128.xor (v128.load (local.get $second)) (v128.load offset=16 (local.get $second)))))
      (local.set $c (i32x4.add (local.get $c)
        (v128.xor (v128.load (local.get $third)) (v128.load offset=16 (local.get $third)))))
      (local.set $d (i32x4.add (local.get $d)
        (v128.xor (v128.load (local.get $fourth)) (v128.load offset=16 (local.get $fourth)))))
      (local.set $second (i32.add (local.get $second) (i32.const 32)))
      (local.set $third (i32.add (local.get $third) (i32.const 32)))
      (local.set $fourth (i32.add (local.get $fourth) (i32.const 32)))
      (br_if $next (i32.lt_u
        (local.tee $at (i32.add (local.get $at) (i32.const 32)))
        (local.get $bytes))))
    (i32x4.extract_lane 0 (i32x4.add
      (i32x4.add (local.get $a) (local.get $b))
      (i32x4.add (local.get $c) (local.get $d))))))
